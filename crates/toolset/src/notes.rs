//! Notes as the readers of a list see them: behind the description.

use crate::model::Note;

/// The most tokens that the notes of one tool should take: with more, they crowd out what the tool
/// says of itself.
pub const TOKEN_BUDGET: usize = 500;

/// Estimates how many tokens a text is for a model: one for four bytes.
#[must_use]
pub const fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// Returns a description with the notes behind it, as Markdown. Without notes it is unchanged.
#[must_use]
pub fn hydrate(description: Option<&str>, notes: &[&Note]) -> String {
    let mut text = description.unwrap_or_default().to_owned();
    if notes.is_empty() {
        return text;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str("### Additional Tool Notes\n");
    for note in notes {
        text.push_str(&format!("\n• **{}**: {}", note.name, note.note.as_str()));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ToolRef, Toolset};

    fn note((name, text): (String, String)) -> Note {
        Note::new(name.parse().unwrap(), text.parse().unwrap())
    }

    #[test]
    fn notes_follow_the_description_as_documented() {
        let notes = [
            note(("usage".into(), "Load the projects → first".into())),
            note(("priority".into(), "'urgent' is 1".into())),
        ];
        let notes: Vec<_> = notes.iter().collect();
        let shown = "### Additional Tool Notes\n\n• **usage**: Load the projects → first\n\
                     • **priority**: 'urgent' is 1";
        for (description, expected) in [
            (
                Some("Creates an issue"),
                format!("Creates an issue\n\n{shown}"),
            ),
            (Some(""), shown.to_owned()),
            (None, shown.to_owned()),
        ] {
            assert_eq!(hydrate(description, &notes), expected);
        }
        assert_eq!(hydrate(Some("as it was\n"), &[]), "as it was\n");
    }

    proptest! {
        #[test]
        fn notes_are_added_once_each_and_all_are_shown_in_order(
            calls in prop::collection::vec(
                prop::collection::vec(("[a-d0-1-]{1,2}", "[a-z•*#: ]{1,9}"), 0..5),
                0..6,
            ),
            description in prop::option::of("[a-z\n•#]{0,9}"),
        ) {
            let (by_name, mut toolset) = (ToolRef::named("a.b"), Toolset::default());
            let mut expected: Vec<Note> = Vec::new();
            for notes in calls {
                let notes: Vec<_> = notes.into_iter().map(note).collect();
                let before = toolset.clone();
                let mut fresh: Vec<Note> = Vec::new();
                for note in &notes {
                    let known = expected.iter().chain(&fresh).any(|it| it.name == note.name);
                    fresh.extend((!known).then(|| note.clone()));
                }
                match toolset.add_notes(&by_name, &by_name, notes) {
                    Ok(added) => {
                        prop_assert_eq!(&added, &fresh);
                        expected.extend(added);
                    }
                    Err(_) => {
                        prop_assert!(expected.len() + fresh.len() > 20);
                        prop_assert_eq!(&toolset, &before);
                    }
                }
            }
            let notes = toolset.notes_of(&by_name);
            prop_assert_eq!(&notes, &expected.iter().collect::<Vec<_>>());
            let shown = hydrate(description.as_deref(), &notes);
            let mut head = description.unwrap_or_default();
            if !expected.is_empty() {
                head += if head.is_empty() { "" } else { "\n\n" };
                head += "### Additional Tool Notes\n\n";
            }
            let lines = expected.iter().map(|it| format!("• **{}**: {}", it.name, it.note.as_str()));
            prop_assert_eq!(shown, head + &lines.collect::<Vec<_>>().join("\n"));
        }
    }
}
