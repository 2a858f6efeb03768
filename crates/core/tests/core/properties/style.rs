//! How a name is spelled does not matter, only which words it has.

use callward_core::infer::{RuleSet, Subject};
use proptest::prelude::*;

/// Verbs and nouns as names have them: plain, inflected, joined, with digits, acronyms.
const WORDS: &[&str] = &[
    "get", "gets", "getting", "list", "listing", "delete", "deletes", "deleting", "deleted",
    "create", "created", "update", "updating", "updates", "send", "search", "query", "run", "set",
    "check", "in", "log", "view", "remove", "and", "or", "user", "users", "orders", "status",
    "comment", "history", "next", "random", "s3", "ec2", "v2", "oauth2", "url", "sql", "dns", "id",
    "api", "db", "acme",
];

/// Words that are written in capitals where a name has capitals at all.
const ACRONYMS: &[&str] = &["url", "sql", "dns", "id", "api", "db"];

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// All spellings of a name with these words.
fn styles(words: &[&str]) -> Vec<String> {
    let after_first = |spell: &dyn Fn(&str) -> String| -> String {
        let rest = words[1..].iter().map(|word| spell(word));
        std::iter::once(words[0].to_owned()).chain(rest).collect()
    };
    let acronym = |word: &str| {
        if ACRONYMS.contains(&word) {
            word.to_ascii_uppercase()
        } else {
            capital(word)
        }
    };
    let joined = |mark: &str| words.join(mark);
    let mut all = vec![
        joined("_"),
        joined("-"),
        joined("."),
        joined(" "),
        joined("_").to_ascii_uppercase(),
        joined("-").to_ascii_uppercase(),
        words.iter().map(|word| capital(word)).collect(),
        after_first(&capital),
        words
            .iter()
            .map(|word| capital(word))
            .collect::<Vec<_>>()
            .join("_"),
    ];
    // Where an acronym meets another, or a letter with its number, the end is ambiguous.
    let runs_on = |word: &str| ACRONYMS.contains(&word) || ["s3", "v2"].contains(&word);
    let apart = words.windows(2).all(|pair| match pair {
        [first, second] => !ACRONYMS.contains(first) || !runs_on(second),
        _ => true,
    });
    if apart {
        all.push(words.iter().map(|word| acronym(word)).collect());
        all.push(after_first(&acronym));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn the_spelling_of_a_name_makes_no_difference(
        words in prop::collection::vec(prop::sample::select(WORDS), 1..5),
        described in prop::collection::vec(prop::sample::select(WORDS), 0..5),
        known in any::<bool>(),
    ) {
        let description = described.join(" ");
        let mut verdicts = styles(&words).into_iter().map(|name| {
            let subject = Subject {
                description: Some(&description),
                server: known.then_some("acme"),
                ..Subject::new(&name)
            };
            (RuleSet::Standard.infer(&subject), name)
        });
        let (expected, first) = verdicts.next().expect("a name has a spelling");
        for (verdict, name) in verdicts {
            prop_assert_eq!(&verdict, &expected, "{} and {}", name, first);
        }
    }
}
