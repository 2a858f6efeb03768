//! Counting right and wrong.

use std::collections::{BTreeMap, BTreeSet};

use callward_core::infer::{Inference, Inferred, Lexicon, Listed, RuleSet, Strength, Subject};
use callward_core::resolve::{Hints, resolve};
use callward_core::{Annotations, Field, Resolved, Source, Trust};
use serde::{Serialize, Serializer};

use super::Case;

/// The four hints of the specification, in the order they are printed.
pub const HINTS: [Field; 4] = [
    Field::ReadOnly,
    Field::Destructive,
    Field::Idempotent,
    Field::OpenWorld,
];

const fn of(hint: Field, hints: &Annotations) -> Option<bool> {
    match hint {
        Field::ReadOnly => hints.read_only_hint,
        Field::Destructive => hints.destructive_hint,
        Field::Idempotent => hints.idempotent_hint,
        Field::OpenWorld => hints.open_world_hint,
        _ => None,
    }
}

/// Writes a hint by its short name.
fn short<S: Serializer>(hint: &Field, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(hint.as_str().trim_end_matches("Hint"))
}

/// How often a hint was concluded, and rightly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Concluded and declared.
    pub hit: usize,
    /// Concluded, and declared `false`.
    pub false_alarm: usize,
    /// Declared, and not concluded.
    pub miss: usize,
    /// Declared `false`, and not concluded.
    pub rest: usize,
}

impl Counts {
    const fn add(&mut self, concluded: bool, declared: bool) {
        match (concluded, declared) {
            (true, true) => self.hit += 1,
            (true, false) => self.false_alarm += 1,
            (false, true) => self.miss += 1,
            (false, false) => self.rest += 1,
        }
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            hit: self.hit + other.hit,
            false_alarm: self.false_alarm + other.false_alarm,
            miss: self.miss + other.miss,
            rest: self.rest + other.rest,
        }
    }

    /// How many tools the hint was declared of.
    pub const fn all(&self) -> usize {
        self.hit + self.false_alarm + self.miss + self.rest
    }

    /// Of what was concluded, the share that was declared; `None` if nothing was.
    pub fn precision(&self) -> Option<f64> {
        share(self.hit, self.hit + self.false_alarm)
    }

    /// Of what was declared, the share that was concluded; `None` if nothing was.
    pub fn recall(&self) -> Option<f64> {
        share(self.hit, self.hit + self.miss)
    }

    /// The harmonic mean of both; `None` where there is nothing to find and nothing was concluded.
    pub fn f1(&self) -> Option<f64> {
        share(2 * self.hit, 2 * self.hit + self.false_alarm + self.miss)
    }
}

pub(super) fn mean(all: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = all.fold((0.0, 0_u32), |(sum, count), one| (sum + one, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

pub(super) fn share(part: usize, of: usize) -> Option<f64> {
    let real = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    (of > 0).then(|| real(part) / real(of))
}

/// A tool of which one hint came out otherwise than declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mistake {
    /// The hint.
    #[serde(serialize_with = "short")]
    pub hint: Field,
    /// The server's name.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// What its author declared.
    pub declared: bool,
    /// What came out; `None` if nothing was concluded, which counts as `false`.
    pub concluded: Option<bool>,
    /// It came out on strong evidence: firmly enough to relax, and to contradict a server.
    pub strong: bool,
    /// Who decided otherwise, and why.
    pub why: String,
}

/// The figures of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfServer {
    /// Counts of each hint it declares.
    pub hints: BTreeMap<Field, Counts>,
    /// How many of its tools are declared not read-only, or destructive.
    pub writes: usize,
    /// How many of those came out as read-only.
    pub harmful: usize,
}

/// All figures of one run.
#[derive(Debug, Clone, Default)]
pub struct Score {
    /// How many tools were scored.
    pub tools: usize,
    /// Counts over all tools.
    pub total: BTreeMap<Field, Counts>,
    /// Figures server by server.
    pub servers: BTreeMap<String, OfServer>,
    /// How many tools are declared not read-only, or destructive.
    pub writes: usize,
    /// Those of them that came out as read-only: the errors that do harm.
    pub harmful: Vec<Mistake>,
    /// All errors, tool by tool.
    pub mistakes: Vec<Mistake>,
}

impl Score {
    /// Returns the share of writes that came out as read-only.
    pub fn unsafe_share(&self) -> Option<f64> {
        share(self.harmful.len(), self.writes)
    }

    /// Returns the mean F1 over the servers that declare the hint true at least once, or where it
    /// was concluded.
    pub fn macro_f1(&self, hint: Field) -> Option<f64> {
        mean(
            self.servers
                .values()
                .filter_map(|server| server.hints.get(&hint)?.f1()),
        )
    }
}

/// Scores the effective hints of each tool against what its author declared.
pub fn score(cases: &[Case], rules: RuleSet) -> Score {
    count(
        cases,
        undeclared(cases, rules, |_| Lexicon::standard().clone()),
    )
}

/// Scores each server without the verbs that no other server's names have: as if they had been
/// added with only that server in view. It takes more from the lexicon than that, and no rule.
pub fn score_without_own(cases: &[Case], rules: RuleSet) -> Score {
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let standard = Lexicon::standard();
    for case in cases {
        let small = |c: char| c.is_lowercase();
        let parts = case.tool.split(|c: char| !c.is_alphanumeric());
        // `getUser` is `get` and `user`
        let heads = parts
            .clone()
            .map(|part| part.split(|c| !small(c)).next().unwrap_or(part));
        for verb in parts.chain(heads).filter_map(|word| standard.base(word)) {
            users.entry(verb).or_default().insert(&case.server);
        }
    }
    let without = |server: &str| {
        let own = users
            .iter()
            .filter(|(_, of)| of.len() == 1 && of.contains(server));
        own.fold(standard.clone(), |lexicon, (verb, _)| lexicon.without(verb))
    };
    count(cases, undeclared(cases, rules, without))
}

fn count(cases: &[Case], verdicts: impl Iterator<Item = Verdict>) -> Score {
    let mut score = Score {
        tools: cases.len(),
        ..Score::default()
    };
    for (case, verdict) in cases.iter().zip(verdicts) {
        let server = score.servers.entry(case.server.clone()).or_default();
        let hints = &verdict.resolved.annotations;
        let writes = case.declared.read_only_hint == Some(false)
            || case.declared.destructive_hint == Some(true);
        if writes {
            score.writes += 1;
            server.writes += 1;
            if hints.read_only_hint == Some(true) {
                server.harmful += 1;
                let harm = verdict.mistake(case, Field::ReadOnly, false);
                score.harmful.push(harm);
            }
        }
        for hint in HINTS {
            let Some(declared) = of(hint, &case.declared) else {
                continue;
            };
            let concluded = of(hint, hints) == Some(true);
            for counts in [&mut score.total, &mut server.hints] {
                counts.entry(hint).or_default().add(concluded, declared);
            }
            if concluded != declared {
                score.mistakes.push(verdict.mistake(case, hint, declared));
            }
        }
    }
    score
}

/// What was concluded of a tool, and the outcome of it.
struct Verdict {
    inferred: Inferred,
    resolved: Resolved,
}

impl Verdict {
    fn mistake(&self, case: &Case, hint: Field, declared: bool) -> Mistake {
        let concluded = self.resolved.provenance_of(hint);
        let strong = concluded.is_some_and(|entry| entry.source == Source::Inferred)
            && (self.inferred.evidence_for(hint))
                .is_some_and(|evidence| evidence.strength == Strength::Strong);
        Mistake {
            hint,
            server: case.server.clone(),
            tool: case.tool.clone(),
            declared,
            concluded: of(hint, &self.resolved.annotations),
            strong,
            why: self.resolved.why(hint).into_owned(),
        }
    }
}

/// The effective hints of each tool had its server declared nothing. Tools of one server are read
/// together, as at registration.
fn undeclared(
    cases: &[Case],
    rules: RuleSet,
    lexicon: impl Fn(&str) -> Lexicon,
) -> impl Iterator<Item = Verdict> {
    let nothing = Annotations::default();
    let mut servers: BTreeMap<&str, Vec<(usize, &Case)>> = BTreeMap::new();
    for (at, case) in cases.iter().enumerate() {
        servers.entry(&case.server).or_default().push((at, case));
    }
    let mut all = BTreeMap::new();
    for (server, of_server) in &servers {
        let lexicon = &lexicon(server);
        let inference = Inference { rules, lexicon };
        let listed = of_server.iter().map(|(_, case)| Listed {
            subject: Subject {
                name: &case.tool,
                description: case.description.as_deref(),
                server: Some(&case.server),
                input_schema: case.input_schema.as_deref(),
            },
            declared: &nothing,
        });
        let inferred = inference.infer_all(&Vec::from_iter(listed));
        for ((at, _), inferred) in of_server.iter().zip(inferred) {
            let resolved = resolve(&Hints::new(&inferred, &nothing, Trust::Standard));
            all.insert(*at, Verdict { inferred, resolved });
        }
    }
    all.into_values()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::read;

    const CORPUS: &str = r#"
{"server":"a","tool":"get_user","declared":{"readOnlyHint":true}}
{"server":"a","tool":"get_ticket","declared":{"readOnlyHint":false}}
{"server":"b","tool":"delete_user","declared":{"readOnlyHint":false,"destructiveHint":true}}
{"server":"b","tool":"frobnicate","declared":{"readOnlyHint":true,"destructiveHint":null}}
"#;

    #[test]
    fn each_cell_of_the_table_is_counted() {
        let cases = read(CORPUS).unwrap();
        let score = score(&cases, RuleSet::Standard);
        let reads = score.total[&Field::ReadOnly];
        assert_eq!(
            reads,
            Counts {
                hit: 1,
                false_alarm: 1,
                miss: 1,
                rest: 1
            }
        );
        assert_eq!(reads.f1(), Some(0.5));
        assert_eq!(score.total[&Field::Destructive].hit, 1);
        assert_eq!(score.macro_f1(Field::ReadOnly), Some(1.0 / 3.0));
        assert_eq!(score.macro_f1(Field::OpenWorld), None);
    }

    #[test]
    fn a_write_called_read_only_is_harmful() {
        let score = score(&read(CORPUS).unwrap(), RuleSet::Standard);
        assert_eq!(score.writes, 2);
        assert_eq!(score.unsafe_share(), Some(0.5));
        assert_eq!(score.harmful[0].tool, "get_ticket");
        assert_eq!(score.harmful[0].why, "inferred, the name leads with `get`");
    }

    #[test]
    fn a_verb_of_one_server_is_not_known_there_without_its_own() {
        let cases = read(CORPUS).unwrap();
        let score = score_without_own(&cases, RuleSet::Standard);
        // both `get` tools are of one server
        assert_eq!(score.total[&Field::ReadOnly].hit, 0);
        assert!(score.harmful.is_empty());
    }

    #[test]
    fn a_line_that_is_no_tool_is_named() {
        let error = read("{\"server\":\"a\",\"tool\":\"b\"}\n\n{}").unwrap_err();
        assert!(error.starts_with("line 3: "), "{error}");
    }
}
