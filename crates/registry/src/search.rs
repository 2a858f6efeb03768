//! Searches of a catalogue, and its counts.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use callward_core::{
    Annotations, CallStats, CallTotals, Domain, ReplicaSetId, SafetyLevel, ServerId, ToolName,
    words_of,
};
use serde::Serialize;

use crate::catalogue::{Catalogue, Entry, ToolNames};
use crate::part::Part;
use crate::query::{Query, Sort};

/// The answer to a [`Query`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Found {
    /// How many tools match.
    pub total: usize,
    /// Those of the page that was asked for.
    pub tools: Vec<Arc<Entry>>,
}

/// How many tools of each kind there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CatalogueStats {
    /// All tools.
    pub total: usize,
    /// By the servers that list them.
    pub by_server: BTreeMap<ServerId, usize>,
    /// By set.
    pub by_set: BTreeMap<ReplicaSetId, usize>,
    /// By domain.
    pub by_category: BTreeMap<Domain, usize>,
    /// By how dangerous calls are.
    pub by_safety_level: BTreeMap<SafetyLevel, usize>,
    /// Those whose server declares a hint.
    pub annotated: usize,
    /// Those whose definition says that they are deprecated.
    pub deprecated: usize,
    /// Tools that are listed or configured, and not offered.
    pub refused: usize,
}

/// A tool that matches: what sorts it, and its place in the catalogue.
type Match = (Option<f64>, usize);

/// The most words of a text that are looked for.
const MAX_WORDS: usize = 32;

impl Catalogue {
    /// Finds tools. `shows` says which tools the caller may know of: others are not counted either.
    /// `is_up` says which servers are up.
    ///
    /// The first search after a change reads the tools of sets that changed.
    pub fn search(
        &self,
        query: &Query,
        shows: impl Fn(&Entry) -> bool,
        is_up: impl Fn(&ServerId) -> bool,
    ) -> Found {
        let name = query.name.as_deref().filter(|name| !name.is_empty());
        let name = name.map(str::to_lowercase);
        let words: HashSet<String> = query.text.iter().flat_map(|text| words_of(text)).collect();
        let words = self.weighed(words);
        let default = (name.is_some() || query.text.is_some()).then_some(Sort::Relevance);
        let sort = query.sort.or(default);
        let other_hints = others(&query.hints);
        let (mut found, mut counted) = (Vec::new(), Vec::new());
        let mut first = 0;
        for (set, part) in &self.parts {
            let start = first;
            first += part.entries.len();
            let (Some(listed), Some(available)) = (
                part.listed_by(&query.servers, set),
                part.listed_by_up(query.available, &is_up),
            ) else {
                continue;
            };
            let Some(scores) = part.scores(name.as_deref(), query, &words) else {
                continue;
            };
            let facts = part.index().facts.iter();
            for (at, (facts, entry)) in facts.zip(&part.entries).enumerate() {
                let score = scores.get(at).copied();
                let lists = |by: &Listed<'_>| by.has(entry.tool().name());
                if score == Some(0.0)
                    || !facts.match_all(query)
                    || !(lists(&listed) && lists(&available))
                    || other_hints
                        .as_ref()
                        .is_some_and(|hints| !entry.tool().resolved.annotations.matches(hints))
                    || !shows(entry)
                {
                    continue;
                }
                let place = start + at;
                let key = match sort {
                    Some(Sort::Relevance) => score.map(|score| -f64::from(score)),
                    Some(Sort::Name) => self.name_ranks().get(place).map(|it| f64::from(*it)),
                    Some(Sort::Calls | Sort::SuccessRate | Sort::Duration) => {
                        counted.push(facts.stats.as_deref());
                        None
                    }
                    None => Some(place as f64),
                };
                found.push((key, place));
            }
        }
        // together, as each waits for memory
        for (found, stats) in found.iter_mut().zip(counted) {
            let totals = stats.map_or_else(CallTotals::default, CallStats::totals);
            found.0 = match sort {
                Some(Sort::SuccessRate) => totals.success_rate,
                Some(Sort::Duration) => totals.mean_ms,
                _ => Some(totals.calls as f64),
            };
        }
        let total = found.len();
        let page = page(found, query).filter_map(|(_, place)| self.entries.get(place));
        Found {
            total,
            tools: page.cloned().collect(),
        }
    }

    /// Counts the tools.
    #[must_use]
    pub fn stats(&self) -> CatalogueStats {
        let mut stats = CatalogueStats {
            total: self.entries.len(),
            refused: self.refused.len(),
            ..CatalogueStats::default()
        };
        for (set, part) in &self.parts {
            stats.by_set.insert(set.clone(), part.entries.len());
            for (server, names) in &part.servers {
                let offers = |entry: &&Arc<Entry>| names.contains(entry.tool().name());
                let offered = part.entries.iter().filter(offers).count();
                stats.by_server.insert(server.clone(), offered);
            }
            for facts in &part.index().facts {
                *stats.by_category.entry(facts.domain).or_default() += 1;
                *stats.by_safety_level.entry(facts.safety).or_default() += 1;
                stats.annotated += usize::from(facts.is_annotated);
                stats.deprecated += usize::from(facts.is_deprecated);
            }
        }
        stats
    }

    /// Adds to each word how rare it is: a rare one says more.
    fn weighed(&self, words: HashSet<String>) -> Vec<(String, f32)> {
        let all = self.entries.len() as f32;
        let mut words: Vec<_> = words.into_iter().collect();
        words.sort_unstable();
        words.truncate(MAX_WORDS);
        let with = |word: &str| -> usize {
            let parts = self.parts.values();
            parts.map(|part| part.index().with_word(word).len()).sum()
        };
        let rarity = |word: &str| (1.0 + all / (0.5 + with(word) as f32)).ln();
        let weighed = words.into_iter().map(|word| {
            let rarity = rarity(&word);
            (word, rarity)
        });
        weighed.collect()
    }

    /// Returns the rank of each tool by name, in the order of the catalogue.
    fn name_ranks(&self) -> &[u32] {
        self.name_ranks.get_or_init(|| {
            let mut places: Vec<usize> = (0..self.entries.len()).collect();
            places.sort_by_cached_key(|place| self.entries.get(*place).map(|it| it.client_name()));
            let mut ranks = vec![0; places.len()];
            for (rank, place) in (0..).zip(places) {
                if let Some(own) = ranks.get_mut(place) {
                    *own = rank;
                }
            }
            ranks
        })
    }
}

/// Which tools of a part are listed by some of its servers.
enum Listed<'a> {
    All,
    By(Vec<&'a ToolNames>),
    NotBy(Vec<&'a ToolNames>),
}

impl Listed<'_> {
    fn has(&self, tool: &ToolName) -> bool {
        match self {
            Self::All => true,
            Self::By(lists) => lists.iter().any(|names| names.contains(tool)),
            Self::NotBy(lists) => !lists.iter().any(|names| names.contains(tool)),
        }
    }
}

/// Takes the place of a tool and how well it matches.
type Score<'a> = dyn FnMut(usize, f32) + 'a;

impl Part {
    /// Returns which tools these servers or sets have; `None` for none.
    fn listed_by(&self, names: &[String], set: &ReplicaSetId) -> Option<Listed<'_>> {
        let is_named = |known: &str| names.iter().any(|name| name == known);
        if names.is_empty() || is_named(set.as_str()) {
            return Some(Listed::All);
        }
        let lists = self.lists(|server| is_named(server.as_str()));
        (!lists.is_empty()).then_some(Listed::By(lists))
    }

    /// Returns which tools are listed by a server that is up, or by none.
    fn listed_by_up(
        &self,
        available: Option<bool>,
        is_up: impl Fn(&ServerId) -> bool,
    ) -> Option<Listed<'_>> {
        let Some(available) = available else {
            return Some(Listed::All);
        };
        let lists = self.lists(is_up);
        match (lists.len(), available) {
            (0, true) => None,
            (0, false) => Some(Listed::All),
            (up, _) if up == self.servers.len() => available.then_some(Listed::All),
            (_, true) => Some(Listed::By(lists)),
            (_, false) => Some(Listed::NotBy(lists)),
        }
    }

    fn lists(&self, counts: impl Fn(&ServerId) -> bool) -> Vec<&ToolNames> {
        let servers = self.servers.iter().filter(|(server, _)| counts(server));
        servers.map(|(_, names)| &**names).collect()
    }

    /// Returns how well each tool matches name, text and tags, 0 if it does not. `None`: no tool
    /// does; empty: nothing is asked for.
    fn scores(
        &self,
        name: Option<&str>,
        query: &Query,
        words: &[(String, f32)],
    ) -> Option<Vec<f32>> {
        let index = self.index();
        let mut scores: Vec<f32> = Vec::new();
        let mut require = |scored: &dyn Fn(&mut Score<'_>)| {
            let mut own = vec![0.0; self.entries.len()];
            let mut any = false;
            scored(&mut |at, score| {
                if let Some(own) = own.get_mut(at) {
                    *own += score;
                    any = true;
                }
            });
            match scores.is_empty() {
                true => scores = own,
                // each condition must hold; the sum ranks
                false => {
                    for (all, own) in scores.iter_mut().zip(own) {
                        *all = if *all == 0.0 || own == 0.0 {
                            0.0
                        } else {
                            *all + own
                        };
                    }
                }
            }
            any.then_some(())
        };
        if let Some(name) = name {
            require(&|found| index.with_name(name, found))?;
        }
        if query.text.is_some() {
            require(&|found| {
                for (word, rarity) in words {
                    let with_word = index.with_word(word).iter();
                    with_word.for_each(|(at, weight)| found(*at as usize, weight * rarity));
                }
            })?;
        }
        if !query.tags.is_empty() {
            require(&|found| {
                for tag in &query.tags {
                    let tagged = index.with_word(&format!("#{tag}")).iter();
                    tagged.for_each(|(at, _)| found(*at as usize, 1.0));
                }
            })?;
        }
        Some(scores)
    }
}

/// Returns the hints that facts do not have, if there are some.
fn others(hints: &Annotations) -> Option<Annotations> {
    let mut others = hints.clone();
    others.read_only_hint = None;
    others.destructive_hint = None;
    others.idempotent_hint = None;
    others.open_world_hint = None;
    (others != Annotations::default()).then_some(others)
}

/// Sorts as far as the page needs, and returns the page.
fn page(mut found: Vec<Match>, query: &Query) -> impl Iterator<Item = Match> {
    let order = |(a, place): &Match, (b, other): &Match| {
        let by_key = match (a, b) {
            (Some(a), Some(b)) if query.descending => b.total_cmp(a),
            (Some(a), Some(b)) => a.total_cmp(b),
            // those without a key are last
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        by_key.then(place.cmp(other))
    };
    let end = query
        .limit
        .map_or(usize::MAX, |limit| query.offset.saturating_add(limit));
    if end < found.len() {
        found.select_nth_unstable_by(end, order);
        found.truncate(end);
    }
    found.sort_unstable_by(order);
    found.into_iter().skip(query.offset)
}
