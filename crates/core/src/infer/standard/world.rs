//! Whether a tool meets things that nobody here controls.
//!
//! That is mostly a matter of the server, and one tool shows little of it. So the specification's
//! own default is taken, which is also the careful one: open, unless something speaks for a tool that
//! stays at home. Words of the web speak against that.

use crate::infer::Subject;
use crate::infer::evidence::Reason;
use crate::infer::words;

/// Things that lie outside.
const OUTSIDE: &[&str] = &[
    "browser", "crawl", "email", "internet", "mail", "online", "scrape", "url", "web", "webpage",
    "website",
];

/// Things of the machine the server runs on, and what needs no world at all.
const AT_HOME: &[&str] = &[
    "calculate",
    "commit",
    "directories",
    "directory",
    "echo",
    "entities",
    "file",
    "files",
    "filesystem",
    "folder",
    "git",
    "graph",
    "local",
    "memory",
    "process",
    "processes",
    "stdin",
    "terminal",
    "think",
    "thinking",
    "thought",
    "time",
    "timezone",
    "uuid",
];

/// Says why a tool may reach out; `None` if it seems to stay at home.
pub(super) fn reaches_out(name: &[&str], subject: &Subject<'_>) -> Option<Reason> {
    let server = subject.server.map(words::split).unwrap_or_default();
    let find = |list: &[&'static str]| {
        let has = |entry: &&'static str| {
            name.iter()
                .chain(&server)
                .any(|word| words::same(word, entry))
        };
        list.iter().copied().find(has)
    };
    match (find(OUTSIDE), find(AT_HOME)) {
        (Some(word), _) => Some(Reason::ReachesOut(word)),
        (None, Some(_)) => None,
        (None, None) => Some(Reason::MayReachOut),
    }
}
