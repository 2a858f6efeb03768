//! Which mistakes to look at first.

use super::{Hint, Mistake, Score};

/// How bad a mistake is, from the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Harm {
    /// A write that would be cached and repeated.
    Unsafe,
    /// A conclusion that is wrong, relaxes a rule, and is firm enough to do so.
    Relaxes,
    /// A firm conclusion that is wrong, and outweighs what a server declares.
    Contradicts,
    /// A weak conclusion that is wrong: it costs a question, or a repeat.
    Tightens,
    /// Nothing was concluded.
    Silent,
}

impl Harm {
    fn of(mistake: &Mistake, harmful: bool) -> Self {
        let relaxes = match mistake.hint {
            Hint::ReadOnly | Hint::Idempotent => mistake.concluded == Some(true),
            Hint::Destructive | Hint::OpenWorld => mistake.concluded == Some(false),
        };
        match (mistake.concluded, mistake.strong) {
            _ if harmful => Self::Unsafe,
            (None, _) => Self::Silent,
            _ if relaxes => Self::Relaxes,
            (Some(_), true) => Self::Contradicts,
            (Some(_), false) => Self::Tightens,
        }
    }
}

impl Score {
    /// Returns all mistakes, the worst first: writes that would be called read-only, then other
    /// conclusions that relax a rule, then firm ones that tighten, then weak ones, and at last what
    /// was not concluded. Equals stay in the order of the corpus.
    #[must_use]
    pub fn worst(&self) -> Vec<&Mistake> {
        // The same mistake is in both lists if the author declared read-only false.
        let is_harm = |mistake: &Mistake| self.harmful.contains(mistake);
        let others = self.mistakes.iter().filter(|mistake| !is_harm(mistake));
        let mut all: Vec<(Harm, &Mistake)> = (self.harmful.iter())
            .map(|mistake| (Harm::of(mistake, true), mistake))
            .chain(others.map(|mistake| (Harm::of(mistake, false), mistake)))
            .collect();
        all.sort_by_key(|(harm, _)| *harm);
        all.into_iter().map(|(_, mistake)| mistake).collect()
    }
}

#[cfg(test)]
mod tests {
    use callward_core::RuleSet;

    use crate::score::{Hint, Mistake, Score, read, score};

    fn mistake(tool: &str, hint: Hint, concluded: Option<bool>, strong: bool) -> Mistake {
        Mistake {
            hint,
            server: "a".into(),
            tool: tool.into(),
            declared: concluded != Some(true),
            concluded,
            strong,
            why: String::new(),
        }
    }

    #[test]
    fn what_does_harm_comes_first() {
        let unsafe_read = mistake("unsafe", Hint::ReadOnly, Some(true), true);
        let score = Score {
            harmful: vec![unsafe_read.clone()],
            mistakes: vec![
                mistake("silent", Hint::ReadOnly, None, false),
                mistake("tightens", Hint::Destructive, Some(true), false),
                mistake("contradicts", Hint::Destructive, Some(true), true),
                mistake("relaxes", Hint::Idempotent, Some(true), true),
                unsafe_read,
            ],
            ..Score::default()
        };
        let order: Vec<&str> = score.worst().iter().map(|one| one.tool.as_str()).collect();
        let expected = ["unsafe", "relaxes", "contradicts", "tightens", "silent"];
        assert_eq!(order, expected);
    }

    #[test]
    fn nothing_is_listed_twice_or_left_out() {
        let cases = read(include_str!("../../data/corpus.jsonl")).unwrap();
        let score = score(&cases, RuleSet::Neurolink);
        let extra = (score.harmful.iter()).filter(|harm| !score.mistakes.contains(harm));
        assert_eq!(score.worst().len(), score.mistakes.len() + extra.count());
    }
}
