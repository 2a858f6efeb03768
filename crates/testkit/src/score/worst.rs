//! Which mistakes to look at first.

use callward_core::Field;

use super::{Mistake, Score};

/// Returns how bad a mistake is, from the worst, 0.
fn rank(mistake: &Mistake, is_harmful: bool) -> u8 {
    let relaxes = match mistake.hint {
        Field::ReadOnly | Field::Idempotent => mistake.concluded == Some(true),
        _ => mistake.concluded == Some(false),
    };
    match mistake.concluded {
        // a write that would be cached and repeated
        _ if is_harmful => 0,
        // nothing was concluded
        None => 4,
        // a conclusion that relaxes a rule
        _ if relaxes => 1,
        // a firm conclusion that outweighs what a server declares
        _ if mistake.strong => 2,
        // a weak conclusion: it costs a question, or a repeat
        _ => 3,
    }
}

impl Score {
    /// Returns all mistakes, the worst first: writes that would be called read-only, then other
    /// conclusions that relax a rule, then firm ones that tighten, then weak ones, and at last what
    /// was not concluded. Equals stay in the order of the corpus.
    pub fn worst(&self) -> Vec<&Mistake> {
        // the same mistake is in both lists if the author declared read-only false
        let is_harmful = |mistake: &Mistake| self.harmful.contains(mistake);
        let others = self.mistakes.iter().filter(|mistake| !is_harmful(mistake));
        let mut all: Vec<&Mistake> = self.harmful.iter().chain(others).collect();
        all.sort_by_key(|mistake| rank(mistake, is_harmful(mistake)));
        all
    }
}

#[cfg(test)]
mod tests {
    use callward_core::Field;

    use crate::score::{Mistake, Score};

    fn mistake(tool: &str, hint: Field, concluded: Option<bool>, strong: bool) -> Mistake {
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
        let unsafe_read = mistake("unsafe", Field::ReadOnly, Some(true), true);
        let score = Score {
            harmful: vec![unsafe_read.clone()],
            mistakes: vec![
                mistake("silent", Field::ReadOnly, None, false),
                mistake("tightens", Field::Destructive, Some(true), false),
                mistake("contradicts", Field::Destructive, Some(true), true),
                mistake("relaxes", Field::Idempotent, Some(true), true),
                unsafe_read,
            ],
            ..Score::default()
        };
        let order: Vec<&str> = score.worst().iter().map(|one| one.tool.as_str()).collect();
        let expected = ["unsafe", "relaxes", "contradicts", "tightens", "silent"];
        assert_eq!(order, expected);
    }
}
