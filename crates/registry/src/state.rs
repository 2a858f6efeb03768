//! What the registry knows behind its lock, and the snapshots it makes of that.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::{io, mem};

use callward_core::lint::{Candidate, suspicions};
use callward_core::{Instances, ReplicaSetId, ServerId, Subject, ToolDefinition, ToolName, Trust};

use crate::catalogue::{Catalogue, Parts};
use crate::listing::{Digests, Listing, Observed};
use crate::names::{NameTable, Starts};
use crate::pins::{Hold, ReviewOptions, Rules, ToolChange};
use crate::registry::Changes;
use crate::set::{MAX_LISTED, Set, share};
use crate::suggest::{Suggestion, longer_timeout};
use crate::verify;

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) sets: BTreeMap<ReplicaSetId, Set>,
    /// The sets in the order of their first mention, in which they choose names.
    pub(crate) order: Vec<ReplicaSetId>,
    pub(crate) names: NameTable,
    pub(crate) review: ReviewOptions,
    /// By set. It outlives a set that is removed, and may be there before its tools.
    pub(crate) observed: HashMap<ReplicaSetId, Observed>,
    /// The pins have changes that could not be written.
    pub(crate) is_unwritten: bool,
}

/// The names of a set's tools, and whether its other tools get names later.
type Assigned = (HashMap<ToolName, Arc<str>>, bool);

impl State {
    pub(crate) fn set(&mut self, set: ReplicaSetId) -> &mut Set {
        if !self.sets.contains_key(&set) {
            self.order.push(set.clone());
        }
        self.sets.entry(set).or_default()
    }

    /// Reads and reviews the list of a server. `last` has the digests of its last one.
    pub(crate) fn read(
        &mut self,
        set: &ReplicaSetId,
        server: &ServerId,
        definitions: Vec<ToolDefinition>,
        instances: Instances,
        last: Digests,
    ) -> (Listing, Vec<Arc<ToolChange>>) {
        let options = self.set(set.clone()).options.clone();
        let mut rules = Rules {
            hold: self.review.hold,
            new_tools: self.review.new_tools,
            trust: options.trust,
            suspicions: HashMap::new(),
        };
        if rules.trust == Trust::Untrusted && rules.hold != Hold::Nothing {
            rules.suspicions = self.suspicions(set, server, &definitions);
        }
        let mut review = self
            .review
            .pins
            .review((set, server), &definitions, last, rules);
        let mut stats = self.sets.get_mut(set).map(|of| mem::take(&mut of.stats));
        let counts = stats.get_or_insert_default();
        let none = Observed::new();
        let listing = Listing::read(
            (set, server),
            definitions,
            instances,
            (&options, self.observed.get(set).unwrap_or(&none)),
            counts,
            &mut review,
        );
        let followed = mem::take(&mut review.followed);
        let of_set = self.sets.get_mut(set).zip(stats);
        if let Some((of_set, stats)) = of_set {
            of_set.stats = stats;
        }
        let is_moved = review.finish(&listing.digests);
        if (is_moved || self.is_unwritten)
            && let Err(error) = self.save()
        {
            tracing::error!(%set, %error, "what is approved of tools cannot be written");
        }
        (listing, followed.into_iter().map(Arc::new).collect())
    }

    /// Reads the lists of a set once more, and returns what that changes.
    pub(crate) fn read_again(&mut self, set: &ReplicaSetId) -> Changes {
        let mut changed = Vec::new();
        let servers = mem::take(&mut self.set(set.clone()).servers);
        let servers: Vec<_> = servers
            .into_iter()
            .map(|(server, last)| {
                let definitions = last.definitions().cloned().collect();
                let instances = last.instances;
                let (listing, followed) =
                    self.read(set, &server, definitions, instances, last.digests);
                changed.extend(followed);
                (server, listing)
            })
            .collect();
        let entry = self.set(set.clone());
        entry.servers = servers;
        Changes {
            followed: changed,
            ..entry.merge(set)
        }
    }

    /// Returns what is suspicious about tools, also beside those of the other sets.
    fn suspicions(
        &self,
        set: &ReplicaSetId,
        server: &ServerId,
        definitions: &[ToolDefinition],
    ) -> HashMap<ToolName, String> {
        let others = self.sets.iter().filter(|(other, _)| *other != set);
        let others = others.flat_map(|(set, entry)| {
            entry.tools.iter().map(|tool| Candidate {
                subject: Subject {
                    server: Some(set.as_str()),
                    ..Subject::new(tool.name().as_str())
                },
                definition: None,
            })
        });
        let mut all: Vec<_> = others.collect();
        let first = all.len();
        all.extend(definitions.iter().map(|tool| Candidate {
            subject: Subject::of(tool, Some(server)),
            definition: serde_json::from_slice(&tool.raw).ok(),
        }));
        let found = suspicions(&all).into_iter().filter_map(|finding| {
            let tool = definitions.get(finding.index.checked_sub(first)?)?;
            let reason = format!("its {} {}", finding.field, finding.message);
            Some((tool.name.clone(), reason))
        });
        found.collect()
    }

    /// Returns what calls suggest now, in the order of the sets.
    pub(crate) fn suggestions(&self) -> Vec<Suggestion> {
        let tools = self.sets.values().flat_map(|set| {
            let tools = set.tools.iter();
            tools.filter_map(|tool| longer_timeout(tool, &set.options))
        });
        tools.collect()
    }

    /// Writes what is approved and accepted.
    pub(crate) fn save(&mut self) -> io::Result<()> {
        let saved = self
            .review
            .store
            .as_ref()
            .map(|store| store.save(&self.review.pins));
        let saved = saved.unwrap_or(Ok(()));
        self.is_unwritten = saved.is_err();
        saved
    }

    /// Names the tools of each set that does not keep its part, in the order of the sets.
    fn assign_names(&mut self, starts: &Starts, kept: &Parts) -> HashMap<ReplicaSetId, Assigned> {
        let mut assigned = HashMap::new();
        let mut is_expecting = false;
        for id in &self.order {
            if let Some(set) = self.sets.get(id) {
                let own = set.options.prefix.as_deref();
                let waits = is_expecting && own.is_none();
                if !kept.contains_key(id) {
                    let names = self
                        .names
                        .assign(id, &set.options, &set.tools, starts, waits);
                    assigned.insert(id.clone(), (names, waits));
                }
                is_expecting |= own.is_none() && !set.expected.is_empty();
            }
        }
        assigned
    }

    /// Makes the next snapshot. It shares with the last one what did not change: with many servers,
    /// a registration changes little.
    pub(crate) fn catalogue(&mut self, last: &Catalogue, changed: &ReplicaSetId) -> Catalogue {
        let mut catalogue = Catalogue {
            generation: last.generation + 1,
            ..Catalogue::default()
        };
        for (id, set) in &self.sets {
            let prefix = set.options.prefix.as_ref();
            catalogue.starts.add(id, prefix.map(String::as_str));
            if let Some(prefix) = prefix {
                catalogue.prefixes.insert(id.clone(), prefix.clone());
                catalogue.prefixed.insert(prefix.clone(), id.clone());
            }
        }
        let share = share(self.sets.values().map(|set| set.size), MAX_LISTED);
        let mut kept = Parts::default();
        for (id, set) in self.sets.iter().filter(|(id, _)| *id != changed) {
            let part = last.parts.get(id).filter(|part| !part.is_incomplete);
            kept.extend(
                part.filter(|_| set.size <= share)
                    .map(|part| (id.clone(), part.clone())),
            );
        }
        let mut assigned = self.assign_names(&catalogue.starts, &kept);
        for (id, set) in &mut self.sets {
            let Some((names, waits)) = assigned.remove(id) else {
                continue;
            };
            verify::bind(&mut set.tools, &set.pairs, &names);
            set.share_tools();
            let old = last.parts.get(id).map(|part| &**part);
            let mut part = set.part(id, &names, waits, share, old);
            let is_offered = |tool: &ToolName| part.find(tool.as_str()).is_some();
            part.reserved = self.names.reserved(id, is_offered);
            kept.insert(id.clone(), Arc::new(part));
        }
        for set in self.names.sets().filter(|set| !kept.contains_key(*set)) {
            catalogue
                .reserved
                .extend(self.names.reserved(set, |_| false));
        }
        catalogue.fill(kept, last);
        catalogue
    }
}
