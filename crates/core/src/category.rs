//! Three kinds of tools: those that read, write, delete.

use crate::{Annotations, Resolved};

words! {
    /// The purpose of a tool, in one of MCPGate's three words.
    ///
    /// Coarser than an [`Effect`](crate::Effect): overwriting is writing, removing is deleting, and
    /// no write counts as idempotent. Every category reaches into an open world. A category does
    /// not depend on the profile; how calls are treated does.
    ///
    /// | | `readOnlyHint` | `destructiveHint` | `idempotentHint` | `openWorldHint` |
    /// | --- | --- | --- | --- | --- |
    /// | read: list, search, get | true | false | true | true |
    /// | write: create, send, update | false | false | false | true |
    /// | delete: delete, archive, remove | false | true | false | true |
    ///
    /// ```
    /// use callward_core::{Annotations, Category, Resolved, Source};
    ///
    /// let hints = Annotations::default().with_destructive(true).with_idempotent(true);
    /// let category = Category::of(&Resolved::from_single(hints, Source::Declared));
    /// assert_eq!(category, Category::Delete);
    /// ```
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Category {
        /// Changes nothing.
        Read = "read",
        /// Adds, sends or changes something.
        Write = "write",
        /// Removes something.
        Delete = "delete",
    }
}

impl Category {
    /// Finds the category of a tool by its effective hints.
    ///
    /// A destructive tool deletes, unless that was inferred from a word such as `update` or `send`,
    /// which may overwrite but removes nothing: then it writes.
    pub fn of(resolved: &Resolved) -> Self {
        let hints = &resolved.annotations;
        if resolved.takes_away() {
            Self::Delete
        } else if hints.read_only_hint == Some(true) && hints.destructive_hint != Some(true) {
            Self::Read
        } else {
            Self::Write
        }
    }

    /// Returns the hints a tool of this category has: exactly the four of the MCP specification.
    pub(crate) fn hints(self) -> Annotations {
        Annotations::default()
            .with_read_only(self == Self::Read)
            .with_destructive(self == Self::Delete)
            .with_idempotent(self == Self::Read)
            .with_open_world(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{Hints, resolve};
    use crate::{RuleSet, Source, Subject, Trust};

    #[test]
    fn each_category_has_the_four_hints_of_the_table_and_no_other() {
        for (category, hints) in [
            (Category::Read, [true, false, true]),
            (Category::Write, [false, false, false]),
            (Category::Delete, [false, true, false]),
        ] {
            let [reads, destroys, idempotent] = hints;
            let hints = Annotations::stated(&format!(
                "readOnly={reads} destructive={destroys} idempotent={idempotent} openWorld=true"
            ));
            assert_eq!(category.hints(), hints, "{category}");
            let resolved = Resolved::from_single(hints, Source::Declared);
            assert_eq!(Category::of(&resolved), category);
        }
    }

    #[test]
    fn a_name_that_overwrites_writes_and_one_that_takes_away_deletes() {
        let rows = "
read: list_customers
write: create_customer send_email update_customer move_file frobnicate
delete: delete_customer archive_customer remove_customer search_and_delete log_delete";
        let of = |name: &str, declared: &Annotations, trust| {
            let inferred = RuleSet::Standard.infer(&Subject::new(name));
            Category::of(&resolve(&Hints::new(&inferred, declared, trust)))
        };
        let (silent, destroys) = (Annotations::default(), Category::Delete.hints());
        for (word, names) in rows.lines().filter_map(|row| row.split_once(": ")) {
            for name in names.split(' ') {
                let found = [
                    of(name, &silent, Trust::Standard).as_str(),
                    // a stated hint counts, and an untrusted name excuses nothing
                    of(name, &destroys, Trust::Standard).as_str(),
                    of(name, &silent, Trust::Untrusted).as_str(),
                ];
                assert_eq!(found, [word, "delete", "delete"], "{name}");
            }
        }
    }
}
