//! The kinds of findings, each with a stable name.

use std::str::FromStr;

use crate::InvalidValue;

words! {
    /// How much a finding, or a problem of a set of hints, matters.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Severity {
        /// It could be clearer; nothing goes wrong.
        Info = "info",
        /// Some client or runtime will probably misread the author.
        Warning = "warning",
        /// It is wrong in any case.
        Error = "error",
    }
}

words! {
    /// The kind of a finding. The names are stable: callers may silence, count and search for them.
    ///
    /// Ordered by severity, the worst first.
    #[non_exhaustive]
    Code {
        /// `readOnlyHint` and `destructiveHint` are both true.
        ReadOnlyAndDestructive = "read-only-and-destructive",
        /// `readOnlyHint` is true, but the tool destroys by its name.
        ReadOnlyDestroys = "read-only-destroys",
        /// A hint has a value of the wrong type.
        WrongType = "wrong-type",
        /// A hint or another member of the tool is given twice.
        GivenTwice = "given-twice",
        /// A field of `annotations` is nearly a known hint, so no client reads it.
        MisspelledHint = "misspelled-hint",
        /// A hint stands beside `annotations` instead of in it.
        MisplacedHint = "misplaced-hint",
        /// A number is negative, infinite or not a number.
        NumberOutOfRange = "number-out-of-range",
        /// A tag is empty or white space.
        BlankTag = "blank-tag",
        /// Two tools of one server have the same name.
        DuplicateName = "duplicate-name",
        /// A text instructs the model instead of describing the tool.
        ModelInstructions = "model-instructions",
        /// A text has characters that people do not see.
        HiddenText = "hidden-text",
        /// A text carries data in a URL.
        DataUrl = "data-url",
        /// The name looks like that of another server's tool, and is another one.
        LookAlikeName = "look-alike-name",
        /// `readOnlyHint` is true, but the tool writes by its name.
        ReadOnlyWrites = "read-only-writes",
        /// `readOnlyHint` is true, but an argument may make it write.
        ReadOnlyByArgument = "read-only-by-argument",
        /// `destructiveHint` is false, but the tool destroys by its name.
        DestructiveDenied = "destructive-denied",
        /// `destructiveHint` is true and `requiresConfirmation` is false.
        DestructiveUnconfirmed = "destructive-unconfirmed",
        /// There is no `readOnlyHint`.
        MissingReadOnlyHint = "missing-read-only-hint",
        /// The tool writes, and there is no `destructiveHint`.
        MissingDestructiveHint = "missing-destructive-hint",
        /// A hint has a short name that the specification does not know.
        ShortHintName = "short-hint-name",
        /// The name says that the tool reads, the description that it writes.
        MisleadingName = "misleading-name",
        /// Two names differ only in case or separators.
        SimilarNames = "similar-names",
        /// The server seems to keep state for each client.
        StatefulServer = "stateful-server",
        /// The name has more than 64 characters.
        NameTooLong = "name-too-long",
        /// The name has characters that clients refuse.
        NameCharacters = "name-characters",
        /// There is no description.
        MissingDescription = "missing-description",
        /// The tool writes, and there is no `idempotentHint`.
        MissingIdempotentHint = "missing-idempotent-hint",
        /// There is no `openWorldHint`.
        MissingOpenWorldHint = "missing-open-world-hint",
        /// `idempotentHint` is true, but the verb does more each time.
        DoubtfulIdempotence = "doubtful-idempotence",
        /// `idempotentHint` is false on a read-only tool.
        MeaninglessHint = "meaningless-hint",
        /// `openWorldHint` is false, but the tool takes a URL.
        ClosedWorldUrl = "closed-world-url",
        /// Neither `readOnlyHint` nor the name shows whether the tool writes.
        UnclearName = "unclear-name",
        /// The description has fewer than three words.
        ShortDescription = "short-description",
        /// The name has a dot, which some clients refuse.
        DottedName = "dotted-name",
    }
}

impl Code {
    /// Returns how much it matters.
    pub fn severity(self) -> Severity {
        if self < Self::ModelInstructions {
            Severity::Error
        } else if self < Self::MissingIdempotentHint {
            Severity::Warning
        } else {
            Severity::Info
        }
    }
}

impl FromStr for Code {
    type Err = InvalidValue;

    fn from_str(name: &str) -> Result<Self, InvalidValue> {
        Self::by_name(name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|code| code.as_str()).collect();
            let known = known.join(", ");
            InvalidValue::new(format!("no code {name:?}; the codes are {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_gets_all_names_and_the_worst_come_first() {
        let said = "read-only".parse::<Code>().unwrap_err().to_string();
        assert!(
            said.starts_with("no code \"read-only\"; the codes are read-only-and-destructive, ")
        );
        let severities = Code::ALL.iter().map(|code| code.severity());
        assert!(severities.rev().is_sorted());
    }
}
