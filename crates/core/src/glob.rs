//! Patterns over names: `*` stands for any text, `?` for one character.

use serde::{Deserialize, Serialize};

use crate::{InvalidValue, ReplicaSetId, Tool, ToolName};

/// A pattern for a whole text. `*` stands for any text, `?` for any one character, and every other
/// character for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// Takes a pattern as it is.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Returns `true` if the pattern fits the whole text.
    pub fn fits(&self, text: &str) -> bool {
        fits(&self.0, text)
    }
}

/// A pattern for the tools of a replica set: `SET.TOOL`, each part a [`Glob`] over its own name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolGlob {
    set: Glob,
    tool: Glob,
}

impl ToolGlob {
    /// Reads a pattern such as `files.*`.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if it has no `.` with something on either side.
    pub fn new(pattern: &str) -> Result<Self, InvalidValue> {
        // the name of a set has no `.`, that of a tool may
        match pattern.split_once('.') {
            Some((set, tool)) if !set.is_empty() && !tool.is_empty() => Ok(Self {
                set: Glob::new(set),
                tool: Glob::new(tool),
            }),
            _ => Err(InvalidValue::new(format!(
                "expected SET.TOOL, such as \"files.*\" or \"*.delete_*\", found {pattern:?}"
            ))),
        }
    }

    /// Returns the pattern for the name of the replica set.
    pub fn set(&self) -> &str {
        &self.set.0
    }

    /// Returns the pattern for the name of the tool.
    pub fn tool(&self) -> &str {
        &self.tool.0
    }

    /// Returns `true` if it fits the tool.
    pub fn fits(&self, tool: &Tool) -> bool {
        self.fits_name(tool.set(), tool.name())
    }

    /// Returns `true` if it fits a tool of this set and name.
    pub fn fits_name(&self, set: &ReplicaSetId, tool: &ToolName) -> bool {
        self.set.fits(set.as_str()) && self.tool.fits(tool.as_str())
    }
}

impl TryFrom<String> for ToolGlob {
    type Error = InvalidValue;

    fn try_from(pattern: String) -> Result<Self, InvalidValue> {
        Self::new(&pattern)
    }
}

impl From<ToolGlob> for String {
    fn from(ToolGlob { set, tool }: ToolGlob) -> Self {
        format!("{}.{}", set.0, tool.0)
    }
}

/// Takes time in proportion to the product of the lengths at most: only the last `*` is tried
/// again.
fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // what follows the last `*`, and the text that was left when it was tried
    let mut again: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let left = text.clone();
        match (pattern.next(), text.next()) {
            (Some('*'), _) => {
                text = left;
                again = Some((pattern.clone(), text.clone()));
            }
            (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {}
            (None, None) => return true,
            _ => {
                let Some((after, from)) = &mut again else {
                    return false;
                };
                if from.next().is_none() {
                    return false;
                }
                (pattern, text) = (after.clone(), from.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Annotations, CallPlan, Profile, Resolved, Source, ToolDefinition};

    #[test]
    fn a_pattern_fits_the_whole_text() {
        for (pattern, fit, other) in [
            ("", "", "a"),
            ("*", " a.b*", "-"),
            ("a*c", "ac abc abcc a*c", "ab xac acx"),
            ("*ab*b", "abb aabab xabxb", "ab ba abba"),
            ("a?c", "abc aéc", "ac abbc"),
            ("a.c", "a.c", "abc A.c"),
        ] {
            for text in fit.split(' ') {
                assert!(Glob::new(pattern).fits(text), "{pattern} {text}");
            }
            for text in other.split(' ').filter(|_| pattern != "*") {
                assert!(!Glob::new(pattern).fits(text), "{pattern} {text}");
            }
        }
        // hostile text costs no exponential time
        assert!(!Glob::new("*a".repeat(50)).fits(&"a".repeat(10_000).replace("aa", "ab")));
    }

    #[test]
    fn a_tool_pattern_is_split_at_its_first_dot() {
        let hints = Annotations::default();
        let resolved = Resolved::from_single(hints.clone(), Source::Declared);
        let plan = CallPlan::derive(&resolved, &Profile::standard());
        let definition = ToolDefinition::named("files.read".parse().unwrap(), hints);
        let set = "test";
        let tool = Tool::new(set.parse().unwrap(), definition, resolved, plan);
        for (pattern, fits) in [
            (format!("{set}.files.read"), true),
            (format!("{set}.*"), true),
            ("*.*.read".to_owned(), true),
            ("*.read".to_owned(), false),
            (format!("{set}.files"), false),
        ] {
            assert_eq!(
                ToolGlob::new(&pattern).unwrap().fits(&tool),
                fits,
                "{pattern}"
            );
        }
        for pattern in ["files", "", ".read", "files."] {
            let fault = ToolGlob::new(pattern).unwrap_err().to_string();
            assert!(fault.contains("SET.TOOL"), "{fault}");
        }
    }
}
