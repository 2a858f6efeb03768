//! From a tool's name to a phrase: `customer_delete` is "Delete customer".

use smallvec::SmallVec;

use super::text;
use crate::infer::lexicon::{self, Lexicon, Use};
use crate::infer::words;

/// A phrase has at most so many characters.
pub(super) const MOST: usize = 80;

/// Verbs that inference has no use for, since they say nothing about what is changed.
const OTHER_VERBS: &[&str] = &[
    "ask", "capture", "convert", "crawl", "download", "export", "extract", "generate", "open",
    "play", "render", "resolve", "review", "scan", "select", "test", "watch",
];

/// What a tool does, in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Phrase {
    pub(super) text: String,
    /// The words of it, in lower case.
    pub(super) words: Vec<String>,
}

/// The words of a name, those with digits put together again: `get2FA` is get, 2FA.
type Tokens<'a> = SmallVec<[&'a str; 8]>;

impl Phrase {
    /// Makes a phrase of the name, or takes the title where that says more.
    pub(super) fn of(name: &str, title: Option<&str>, server: Option<&str>) -> Self {
        let named = Named::read(name, server);
        title
            .and_then(|title| named.bettered(title))
            .or_else(|| named.phrase(name))
            .unwrap_or_else(|| Self::spell(text::line(name, MOST)))
    }

    fn spell(text: String) -> Self {
        let text = if text.is_empty() { "Call".into() } else { text };
        let words = tokens(&text)
            .iter()
            .map(|word| word.to_lowercase())
            .collect();
        Self { text, words }
    }
}

/// The words of a name, the verb first.
struct Named<'a> {
    words: Tokens<'a>,
    has_verb: bool,
}

impl<'a> Named<'a> {
    fn read(name: &'a str, server: Option<&str>) -> Self {
        let mut words = own(tokens(name), server);
        let verb = verb(&words);
        if let Some(at) = verb
            && let Some(front) = words.get_mut(..=at)
        {
            front.rotate_right(1);
        }
        Self {
            words,
            has_verb: verb.is_some(),
        }
    }

    fn phrase(&self, name: &str) -> Option<Phrase> {
        // in a name that is all capitals they say nothing
        let shouts = !name.chars().any(char::is_lowercase);
        let spelt = self.words.iter().enumerate().map(|(at, word)| {
            let is_verb = at == 0 && self.has_verb;
            if shouts || is_verb || !is_acronym(word) {
                word.to_lowercase()
            } else {
                (*word).to_owned()
            }
        });
        let text = spelt.collect::<Vec<_>>().join(" ");
        let text = text::line(&text::capitalised(&text), MOST);
        (!text.is_empty()).then(|| Phrase::spell(text))
    }

    /// Takes a title that says the same thing in other words, or says what is done where the name
    /// does not. One that names another verb than the name is not believed.
    fn bettered(&self, title: &str) -> Option<Phrase> {
        let text: String = title.chars().filter(|c| !matches!(c, '{' | '}')).collect();
        let text = text::line(&text, MOST);
        let words = tokens(&text);
        let is_name = text.contains('_') || text.ends_with('…') || words.len() < 2;
        let says_the_same =
            words.len() == self.words.len() && words.iter().all(|word| has(&self.words, word));
        let leads = words.first().is_some_and(|lead| {
            if self.has_verb {
                self.words
                    .first()
                    .is_some_and(|verb| words::same(verb, lead))
            } else {
                is_verb(lead)
            }
        });
        (leads && !is_name && !says_the_same).then(|| Phrase::spell(text::capitalised(&text)))
    }
}

/// Takes leading words off that only name the server, unless nothing but a verb would be left.
fn own<'a>(words: Tokens<'a>, server: Option<&str>) -> Tokens<'a> {
    let server = server.map(words::split).unwrap_or_default();
    let prefix = words
        .iter()
        .take_while(|word| !is_verb(word) && (lexicon::is_filler(word) || has(&server, word)))
        .count();
    match words.get(prefix..) {
        None | Some([]) => words,
        Some([only]) if is_verb(only) => words,
        Some(rest) => rest.into(),
    }
}

/// Finds the verb: the first word, or else the one that is nothing but a verb.
fn verb(words: &[&str]) -> Option<usize> {
    let usage = |word: &&str| Lexicon::standard().find(word).map(|verb| verb.usage);
    let first = words.first()?;
    if contains(OTHER_VERBS, first) || matches!(usage(first), Some(Use::Verb | Use::First)) {
        return Some(0);
    }
    let find = |wanted| words.iter().position(|word| usage(word) == Some(wanted));
    let is_joined = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        before.is_some_and(|word| lexicon::is_join(word))
    };
    let sure = find(Use::Verb).filter(|at| !is_joined(at));
    match usage(first) {
        Some(_) => sure.or(Some(0)),
        None => sure.or_else(|| find(Use::First)),
    }
}

fn tokens(name: &str) -> Tokens<'_> {
    let mut spans: SmallVec<[(usize, usize); 8]> = SmallVec::new();
    let mut from = 0;
    for word in words::split(name) {
        let Some(at) = name.get(from..).and_then(|rest| rest.find(word)) else {
            continue;
        };
        let start = from + at;
        from = start + word.len();
        match spans.last_mut() {
            Some((first, end))
                if *end == start && belong(name.get(*first..*end).unwrap_or(""), word) =>
            {
                *end = from;
            }
            _ => spans.push((start, from)),
        }
    }
    spans
        .into_iter()
        .filter_map(|(start, end)| name.get(start..end))
        .collect()
}

/// Says whether two neighbours without anything between them are one word: `k8s`, `2FA`, not
/// `get2` or `3Put`.
fn belong(before: &str, word: &str) -> bool {
    let is_digit = |c: Option<char>| c.is_some_and(char::is_numeric);
    let mut chars = word.chars();
    let (first, second) = (chars.next(), chars.next());
    if is_digit(before.chars().next_back()) {
        let starts =
            first.is_some_and(char::is_uppercase) && second.is_some_and(char::is_lowercase);
        return !starts;
    }
    is_digit(first) && Lexicon::standard().find(before).is_none()
}

fn is_verb(word: &str) -> bool {
    Lexicon::standard().find(word).is_some() || contains(OTHER_VERBS, word)
}

fn is_acronym(word: &str) -> bool {
    word.chars().nth(1).is_some() && !word.chars().any(char::is_lowercase)
}

fn has(words: &[&str], word: &str) -> bool {
    words.iter().any(|own| words::same(own, word))
}

fn contains(list: &[&str], word: &str) -> bool {
    has(list, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(name: &str) -> String {
        Phrase::of(name, None, None).text
    }

    #[test]
    fn the_verb_leads_and_the_rest_keeps_its_order() {
        for (name, want) in [
            ("delete_customer", "Delete customer"),
            ("deleteCustomer", "Delete customer"),
            ("DELETE-CUSTOMER", "Delete customer"),
            ("customer_delete", "Delete customer"),
            ("user.delete", "Delete user"),
            ("listOpenOrders", "List open orders"),
            ("gmail_read_email", "Read gmail email"),
            ("order_cancel", "Cancel order"),
            ("post_message", "Post message"),
            ("log_add", "Add log"),
            ("get_or_create_user", "Get or create user"),
            ("post_and_delete", "Post and delete"),
            ("download_report_list", "Download report list"),
            ("getHTTPServer", "Get HTTP server"),
            ("get2FA", "Get 2FA"),
            ("list_k8s_pods", "List k8s pods"),
            ("s3PutObject", "Put s3 object"),
            ("base64_encode", "Encode base64"),
            ("order_status", "Order status"),
            ("ping", "Ping"),
            ("löschen", "Löschen"),
            ("ßlist", "SSlist"),
            ("删除用户", "删除用户"),
            ("-_.", "-_."),
            ("", "Call"),
        ] {
            assert_eq!(phrase(name), want, "{name}");
        }
    }

    #[test]
    fn the_servers_name_is_taken_off() {
        for (name, server, want) in [
            ("github_create_issue", "github", "Create issue"),
            ("mcp_github_create_issue", "github", "Create issue"),
            ("notes_list", "notes", "List notes"),
            ("customer_delete", "customer-service", "Delete customer"),
            ("github", "github", "Github"),
            ("search_code", "search", "Search code"),
        ] {
            assert_eq!(Phrase::of(name, None, Some(server)).text, want, "{name}");
        }
    }

    #[test]
    fn a_title_is_taken_where_it_says_more_and_nothing_else() {
        for (name, title, want) in [
            ("del_cust", "Delete customer", "Del cust"),
            ("delete_cust", "Delete customer", "Delete customer"),
            ("search", "Search the web", "Search the web"),
            ("delete_customer", "Delete Customer", "Delete customer"),
            ("delete_customer", "Customer deletion", "Delete customer"),
            ("delete_customer", "Read profile", "Delete customer"),
            ("delete_customer", "delete_customer", "Delete customer"),
            ("delete_customer", "", "Delete customer"),
            ("vm42", "reboot the\nmachine", "Reboot the machine"),
            ("vm42", "Machine", "Vm42"),
            ("vm42", "Reboot {all}", "Reboot all"),
        ] {
            assert_eq!(
                Phrase::of(name, Some(title), None).text,
                want,
                "{name}: {title}"
            );
        }
        let long = format!("Delete {}", "x ".repeat(80));
        assert_eq!(
            Phrase::of("delete_user", Some(&long), None).text,
            "Delete user"
        );
    }

    #[test]
    fn a_long_name_is_cut() {
        let text = phrase(&"delete_user_".repeat(50));
        assert!(
            text.chars().count() <= MOST && text.ends_with('…'),
            "{text}"
        );
    }
}
