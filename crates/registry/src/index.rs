//! What searches read of the tools of one set, so that they touch no definition.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use callward_core::{
    Annotations, CallStats, Category, ConfirmRule, Domain, Metadata, SafetyLevel, words_of,
};

use crate::catalogue::Entry;
use crate::query::Query;

/// The tools of one set as searches read them, each by its place in the set.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) facts: Vec<Facts>,
    /// The names that clients see in lower case, a line each.
    names: String,
    /// The words of all tools, sorted, and where the places of each end. A tag follows `#`.
    words: Vec<(Box<str>, u32)>,
    /// The places of each word, with how much it says about the tool.
    places: Vec<(u32, f32)>,
}

/// What filters read of one tool.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) domain: Domain,
    pub(crate) category: Category,
    pub(crate) safety: SafetyLevel,
    hints: [Option<bool>; 4],
    confirm: bool,
    /// Whether the server declares a hint.
    pub(crate) is_annotated: bool,
    pub(crate) is_deprecated: bool,
    pub(crate) stats: Option<Arc<CallStats>>,
}

/// How much a word says about a tool, by where it is.
const NAME: f32 = 4.0;
const TITLE: f32 = 2.0;
const DESCRIPTION: f32 = 1.0;

const fn four(hints: &Annotations) -> [Option<bool>; 4] {
    [
        hints.read_only_hint,
        hints.destructive_hint,
        hints.idempotent_hint,
        hints.open_world_hint,
    ]
}

impl Index {
    pub(crate) fn of(entries: &[Arc<Entry>]) -> Self {
        let mut index = Self::default();
        let mut words: BTreeMap<String, Vec<(u32, f32)>> = BTreeMap::new();
        for (place, entry) in (0..).zip(entries) {
            let (tool, metadata) = (entry.tool(), Metadata::of(entry.tool()));
            let name = entry.client_name().to_lowercase().replace('\n', " ");
            index.names.push_str(&name);
            index.names.push('\n');
            let shown = entry.shown().and_then(|shown| shown.name.as_deref());
            let mut own: HashMap<String, f32> = HashMap::new();
            let texts = [
                (NAME, shown.or_else(|| Some(tool.name().as_str()))),
                (TITLE, metadata.title.as_deref()),
                (DESCRIPTION, entry.description()),
            ];
            let arguments = metadata.arguments.iter();
            let arguments = arguments.map(|name| (DESCRIPTION, Some(name.as_str())));
            for (weight, text) in texts.into_iter().chain(arguments) {
                for word in text.into_iter().flat_map(words_of) {
                    let most = own.entry(word).or_default();
                    *most = weight.max(*most);
                }
            }
            let tags = tool.resolved.annotations.tags.iter().flatten();
            own.extend(tags.map(|tag| (format!("#{tag}"), 0.0)));
            for (word, weight) in own {
                words.entry(word).or_default().push((place, weight));
            }
            index.facts.push(Facts {
                domain: metadata.domain,
                category: Category::of(&tool.resolved),
                safety: tool.plan().effect.safety_level(),
                hints: four(&tool.resolved.annotations),
                confirm: tool.plan().confirm == ConfirmRule::Ask,
                is_annotated: tool.definition.annotations != Annotations::default(),
                is_deprecated: metadata.is_deprecated,
                stats: tool.stats.clone(),
            });
        }
        for (word, places) in words {
            index.places.extend(places);
            let end = u32::try_from(index.places.len()).unwrap_or(u32::MAX);
            index.words.push((word.into(), end));
        }
        // kept as long as the tools
        index.facts.shrink_to_fit();
        index.names.shrink_to_fit();
        index.words.shrink_to_fit();
        index.places.shrink_to_fit();
        index
    }

    /// Returns the tools that have a word, with how much it says about each.
    pub(crate) fn with_word(&self, word: &str) -> &[(u32, f32)] {
        let found = self
            .words
            .binary_search_by(|(known, _)| (**known).cmp(word));
        let Ok(at) = found else {
            return &[];
        };
        let end = |at: usize| self.words.get(at).map_or(0, |(_, end)| *end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.places.get(start..end(at)).unwrap_or_default()
    }

    /// Passes on each tool whose name has this part, in lower case, with the part's share of it.
    pub(crate) fn with_name(&self, part: &str, mut found: impl FnMut(usize, f32)) {
        let (mut place, mut start, mut last) = (0, 0, None);
        let matches = self.names.match_indices(part);
        // no name has a line break here
        for (at, _) in matches.filter(|_| !part.contains('\n')) {
            let length = |start: usize| self.names[start..].find('\n').unwrap_or_default();
            while start + length(start) < at {
                start += length(start) + 1;
                place += 1;
            }
            if last != Some(place) {
                found(place, part.len() as f32 / length(start).max(1) as f32);
            }
            last = Some(place);
        }
    }
}

impl Facts {
    /// Returns `true` if the tool has all that a query asks for, except its words.
    pub(crate) fn match_all(&self, query: &Query) -> bool {
        let is_kind = query.domains.is_empty() && query.categories.is_empty()
            || query.domains.contains(&self.domain)
            || query.categories.contains(&self.category);
        let mut hints = self.hints.into_iter().zip(four(&query.hints));
        is_kind
            && hints.all(|(own, wanted)| wanted.is_none() || own == wanted)
            && query.safety.is_none_or(|level| level == self.safety)
            && query.confirm.is_none_or(|confirm| confirm == self.confirm)
    }
}
