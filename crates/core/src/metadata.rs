//! What a tool is about, read from its words. For searches and views; no plan depends on it.

use crate::infer::words;
use crate::{Complexity, Members, Tool};

words! {
    /// The domain of a tool, by the words of its name and description.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Domain {
        /// Commits, branches and repositories.
        VersionControl = "version-control",
        /// Files and folders.
        FileSystem = "file-system",
        /// HTTP requests and interfaces.
        Api = "api",
        /// Databases and their records.
        Data = "data",
        /// Users' credentials and sessions.
        Authentication = "authentication",
        /// Builds, releases and what runs them.
        Deployment = "deployment",
        /// Anything else.
        General = "general",
    } default General
}

/// The words of each domain but the last, in the singular.
const WORDS: [&str; 6] = [
    "git github gitlab bitbucket repo repository commit branch rebase merge fork diff changelist",
    "file directory folder path filesystem disk symlink",
    "api http https rest graphql endpoint url uri webhook",
    "data database sql query table row record column dataset schema db collection",
    "auth authenticate authentication authorize authorization login logout signin oauth password \
     credential token",
    "deploy deployment build pipeline release container docker kubernetes k8s pod cluster helm \
     rollout ci",
];

/// How much a word of the name counts beside one of the description.
const NAME: u32 = 4;

impl Domain {
    /// Finds the domain that most words belong to; of several, the first.
    fn of(name: &str, description: &str) -> Self {
        let mut counts = [0; WORDS.len()];
        for (text, weight) in [(name, NAME), (description, 1)] {
            for word in words_of(text) {
                for (count, words) in counts.iter_mut().zip(WORDS) {
                    *count += weight * u32::from(words.split(' ').any(|known| known == word));
                }
            }
        }
        let most = counts.iter().copied().max().filter(|most| *most > 0);
        let at = most.and_then(|most| counts.iter().position(|count| *count == most));
        at.and_then(|at| Self::ALL.get(at).copied())
            .unwrap_or_default()
    }
}

/// What a tool is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The domain, by words.
    pub domain: Domain,
    /// The effective hint; without one simple up to 2 arguments, medium up to 5.
    pub complexity: Complexity,
    /// An argument is a credential, or the description mentions authentication.
    pub needs_authentication: bool,
    /// The definition says that the tool is deprecated.
    pub is_deprecated: bool,
    /// The title, if there is one.
    pub title: Option<String>,
    /// The names of the arguments, in the order of the schema.
    pub arguments: Vec<String>,
}

impl Metadata {
    /// Reads it from a definition.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        let definition = &tool.definition;
        let description = definition.description.as_deref().unwrap_or_default();
        let schema = definition.input_schema.as_ref();
        let arguments = schema.and_then(|schema| names(schema.get(), "properties"));
        let arguments = arguments.unwrap_or_default();
        let complexity = match arguments.len() {
            0..=2 => Complexity::Simple,
            3..=5 => Complexity::Medium,
            _ => Complexity::Complex,
        };
        let hints = &tool.resolved.annotations;
        let raw: Option<Raw> = serde_json::from_slice(&definition.raw).ok();
        let raw = raw.unwrap_or_default();
        Self {
            domain: Domain::of(tool.name().as_str(), description),
            complexity: hints.complexity.unwrap_or(complexity),
            needs_authentication: arguments.iter().any(|name| is_credential(name))
                || words_of(description).any(|word| AUTHENTICATION.contains(&&*word)),
            is_deprecated: raw.is_deprecated() || is_deprecated(description),
            title: raw.title.or_else(|| hints.title.clone()),
            arguments,
        }
    }
}

/// The members of a definition that nothing else reads.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Raw {
    title: Option<String>,
    deprecated: Option<bool>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(serde::Deserialize)]
struct Meta {
    deprecated: Option<bool>,
}

impl Raw {
    fn is_deprecated(&self) -> bool {
        let meta = self.meta.as_ref().and_then(|meta| meta.deprecated);
        self.deprecated.or(meta) == Some(true)
    }
}

const AUTHENTICATION: &[&str] = &["authentication", "authenticate", "authenticated", "oauth"];

fn is_credential(argument: &str) -> bool {
    let words: Vec<String> = words_of(argument).collect();
    match &words[..] {
        [.., key, last] if key == "api" && last == "key" => true,
        [.., last] => ["token", "password", "secret", "credential"].contains(&&**last),
        [] => false,
    }
}

/// How descriptions say so. That the word occurs is not enough: a tool may list deprecated things.
fn is_deprecated(description: &str) -> bool {
    let text = description.to_lowercase();
    let first = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let phrases = [
        "[deprecated",
        "(deprecated",
        "tool is deprecated",
        "this is deprecated",
        "been deprecated",
    ];
    first.starts_with("deprecated") || phrases.iter().any(|phrase| text.contains(phrase))
}

/// Returns the names of the members of a member.
fn names(object: &str, member: &str) -> Option<Vec<String>> {
    let member = Members::read(object).ok()?.last(member)?;
    let members = Members::read(member.get()).ok()?;
    Some(members.iter().map(|(name, _)| name.to_owned()).collect())
}

/// Returns the words of a text or a name of any style, in lower case and in the singular.
pub fn words_of(text: &str) -> impl Iterator<Item = String> {
    words::split(text).into_iter().map(words::singular)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, Resolved, Source, ToolDefinition};

    fn of(tool: &serde_json::Value) -> Metadata {
        let definition = ToolDefinition::from_json(tool.to_string()).unwrap();
        let resolved = Resolved::from_single(definition.annotations.clone(), Source::Declared);
        let plan = crate::CallPlan::derive(&resolved, &Profile::standard());
        let set = crate::ReplicaSetId::new("s").unwrap();
        Metadata::of(&Tool::new(set, definition, resolved, plan))
    }

    #[test]
    fn the_domain_follows_from_words_and_not_from_parts_of_words() {
        for (name, description, domain) in [
            ("create_branch", "", Domain::VersionControl),
            ("digit_sum", "Adds digits legitimately", Domain::General),
            (
                "readFile",
                "Reads a file of the repository",
                Domain::FileSystem,
            ),
            ("send", "Sends an HTTP request to a URL", Domain::Api),
            ("run", "Runs a SQL query", Domain::Data),
            ("loginUser", "", Domain::Authentication),
            ("restart", "Restarts pods of a cluster", Domain::Deployment),
        ] {
            let tool = serde_json::json!({"name": name, "description": description});
            assert_eq!(of(&tool).domain, domain, "{name}");
        }
    }

    #[test]
    fn arguments_and_description_say_the_rest() {
        let properties = |names: &str| -> serde_json::Value {
            let names = names.split_whitespace().map(str::to_owned);
            let empty = |name| (name, serde_json::json!({}));
            serde_json::json!({"properties": serde_json::Map::from_iter(names.map(empty))})
        };
        for (names, description, complexity, authentication, deprecated) in [
            ("a b", "", Complexity::Simple, false, false),
            (
                "a b apiKey",
                "Lists deprecated endpoints",
                Complexity::Medium,
                true,
                false,
            ),
            (
                "a b c d e f",
                "[DEPRECATED] Use y",
                Complexity::Complex,
                false,
                true,
            ),
            (
                "",
                "Requires authentication.",
                Complexity::Simple,
                true,
                false,
            ),
            ("", "Deprecated: use y", Complexity::Simple, false, true),
        ] {
            let tool = serde_json::json!({
                "name": "x", "description": description, "inputSchema": properties(names),
            });
            let found = of(&tool);
            let rest = (
                found.complexity,
                found.needs_authentication,
                found.is_deprecated,
            );
            assert_eq!(
                rest,
                (complexity, authentication, deprecated),
                "{description}"
            );
        }
        let tool = serde_json::json!({"name": "x", "_meta": {"deprecated": true}});
        assert!(of(&tool).is_deprecated);
    }
}
