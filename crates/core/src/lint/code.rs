//! What can be found, each with a name that does not change.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

words! {
    /// How much a finding matters.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Severity {
        /// It could be said better; nothing goes wrong.
        Info = "info",
        /// Some client or runtime will probably not do what the author means.
        Warning = "warning",
        /// It is wrong in any case.
        Error = "error",
    }
}

/// A name that is not a [`Code`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCode {
    name: String,
}

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no code {:?}; the codes are", self.name)?;
        for (at, code) in Code::ALL.iter().enumerate() {
            write!(f, "{} {code}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownCode {}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $severity:ident, $summary:literal;)+) => {
        /// What was found. The names are stable: they may be silenced, counted and searched for.
        ///
        /// Ordered by severity, the worst first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// All codes, the worst first.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns how much it matters.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)+ }
            }

            /// Returns what it means, in a line.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary,)+ }
            }
        }
    };
}

codes! {
    /// `readOnlyHint` and `destructiveHint` are both true. A reader cannot tell which is meant, and
    /// Callward refuses the tool.
    ReadOnlyAndDestructive = "read-only-and-destructive", Error,
        "readOnlyHint and destructiveHint are both true";
    /// `readOnlyHint` is true, and everything else says that the tool destroys. The strongest
    /// contradiction there is: clients would run it unasked, caches would answer for it.
    ReadOnlyDestroys = "read-only-destroys", Error,
        "readOnlyHint is true, but the tool destroys by its name";
    /// A known hint has a value of the wrong type, such as `"readOnlyHint": "yes"`. Typed clients
    /// refuse the tool, or the whole list.
    WrongType = "wrong-type", Error,
        "a hint has a value of the wrong type";
    /// A hint, or another member of the tool, is given twice, or in its short form as well. Readers
    /// disagree about which one counts; if it is one that Callward reads, it refuses the tool.
    GivenTwice = "given-twice", Error,
        "a hint or another member of the tool is given twice";
    /// A field of `annotations` is nearly a known hint, such as `readonlyHint`. No client reads it.
    MisspelledHint = "misspelled-hint", Error,
        "a field of annotations is nearly a known hint, so no client reads it";
    /// A hint stands beside `annotations` instead of in it. No client reads it.
    MisplacedHint = "misplaced-hint", Error,
        "a hint stands beside annotations instead of in it";
    /// A number is negative, infinite or not a number. Callward refuses the tool.
    NumberOutOfRange = "number-out-of-range", Error,
        "a number is negative, or too large to be one";
    /// A tag is empty or white space. Callward refuses the tool.
    BlankTag = "blank-tag", Error,
        "a tag is empty or white space";
    /// A server lists two tools of one name. It is undefined which one a call reaches.
    DuplicateName = "duplicate-name", Error,
        "two tools of one server have the same name";
    /// `readOnlyHint` is true, and the name, or the name together with the description, firmly says
    /// that the tool writes.
    ReadOnlyWrites = "read-only-writes", Warning,
        "readOnlyHint is true, but the tool writes by its name";
    /// `readOnlyHint` is true, and an argument decides whether the tool writes: an `action` that
    /// may be `delete`, or a free `sql`.
    ReadOnlyByArgument = "read-only-by-argument", Warning,
        "readOnlyHint is true, but an argument may make it write";
    /// `destructiveHint` is false, and name or description firmly say that the tool destroys.
    DestructiveDenied = "destructive-denied", Warning,
        "destructiveHint is false, but the tool destroys by its name";
    /// `destructiveHint` is true and `requiresConfirmation` false. Callward asks all the same.
    DestructiveUnconfirmed = "destructive-unconfirmed", Warning,
        "destructiveHint is true and requiresConfirmation false";
    /// There is no `readOnlyHint`, so that clients take the tool for a destructive one.
    MissingReadOnlyHint = "missing-read-only-hint", Warning,
        "there is no readOnlyHint";
    /// A tool that writes does not say whether it destroys. Clients read silence as yes.
    MissingDestructiveHint = "missing-destructive-hint", Warning,
        "the tool writes, and there is no destructiveHint";
    /// A hint has its short form, such as `readOnly`. The specification does not know it, so other
    /// clients read silence.
    ShortHintName = "short-hint-name", Warning,
        "a hint has a short name that the specification does not know";
    /// The name says that the tool reads, and the description that it writes.
    MisleadingName = "misleading-name", Warning,
        "the name reads, the description writes";
    /// Two names of one server differ only in case or separators. Models mix them up.
    SimilarNames = "similar-names", Warning,
        "two names differ only in case or separators";
    /// Its tools look as if the server kept state for each client, such as the tabs of a browser.
    /// Clients that share an instance see and change what others do.
    StatefulServer = "stateful-server", Warning,
        "the server seems to keep state for each client";
    /// The name has more than 64 characters: several model APIs refuse it.
    NameTooLong = "name-too-long", Warning,
        "the name has more than 64 characters";
    /// The name has characters other than letters, digits, `_`, `-` and `.`.
    NameCharacters = "name-characters", Warning,
        "the name has characters that clients refuse";
    /// There is no description. It is what a model chooses by.
    MissingDescription = "missing-description", Warning,
        "there is no description";
    /// A tool that writes does not say whether a second equal call changes anything more.
    MissingIdempotentHint = "missing-idempotent-hint", Info,
        "the tool writes, and there is no idempotentHint";
    /// There is no `openWorldHint`. Clients read silence as open.
    MissingOpenWorldHint = "missing-open-world-hint", Info,
        "there is no openWorldHint";
    /// `idempotentHint` is true, and the verb is one that does more each time: `create`, `send`.
    DoubtfulIdempotence = "doubtful-idempotence", Info,
        "idempotentHint is true, but the verb does more each time";
    /// `idempotentHint` is false on a read-only tool, where it means nothing.
    MeaninglessHint = "meaningless-hint", Info,
        "idempotentHint is false on a read-only tool";
    /// `openWorldHint` is false, and the tool takes a URL.
    ClosedWorldUrl = "closed-world-url", Info,
        "openWorldHint is false, but the tool takes a URL";
    /// Neither `readOnlyHint` nor the name shows whether the tool reads or writes.
    UnclearName = "unclear-name", Info,
        "neither readOnlyHint nor the name shows whether the tool writes";
    /// The description has fewer than three words.
    ShortDescription = "short-description", Info,
        "the description has fewer than three words";
    /// The name has a `.`. The specification allows it, several model APIs do not.
    DottedName = "dotted-name", Info,
        "the name has a dot, which some clients refuse";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == name)
            .ok_or_else(|| UnknownCode {
                name: name.to_owned(),
            })
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_by_its_name_and_a_wrong_one_names_them_all() {
        for code in Code::ALL {
            assert_eq!(code.as_str().parse(), Ok(*code));
        }
        let said = "read-only".parse::<Code>().unwrap_err().to_string();
        assert!(said.starts_with("no code \"read-only\"; the codes are read-only-and"));
        assert!(
            Code::ALL.iter().all(|code| said.contains(code.as_str())),
            "{said}"
        );
    }

    #[test]
    fn the_worst_come_first() {
        assert!(
            Code::ALL
                .windows(2)
                .all(|pair| pair[0] < pair[1] && pair[0].severity() >= pair[1].severity())
        );
    }
}
