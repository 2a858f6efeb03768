//! Servers that seem to keep state for each client: a browser, a cursor, a chain of thoughts.

use std::collections::HashMap;

use super::{Candidate, Code, Finding, Notes};
use crate::ToolDefinition;
use crate::infer::words::{same, split};

/// Words for things that only one client at a time can use.
const HELD: &str = "browser cursor debugger kernel navigate repl screenshot sequentialthinking \
     terminal thinking thought viewport";
/// Words for things that a client may hold, or only read.
const HOLDABLE: &str = "connection page process session shell tab transaction window workspace";
/// Verbs that acquire something for later calls, or release it.
const HOLDING: &str = "activate attach begin close commit connect detach disconnect end focus open \
     resume rollback select start stop switch terminate use";

/// Detects a server that seems to keep state for each client. Returns the index of the
/// tool that shows it first, and the word that does.
///
/// The evidence is names only: a word such as `browser` or `cursor`, or two tools that take hold of
/// one noun, such as `open_page` and `close_page`.
pub fn looks_stateful(tools: &[ToolDefinition]) -> Option<(usize, &'static str)> {
    evidence(tools.iter().map(|tool| tool.name.as_str()))
}

pub(super) fn check(tools: &[Candidate<'_>], findings: &mut Vec<Finding>) {
    let mut servers: Vec<Option<&str>> = Vec::new();
    for tool in tools {
        let server = tool.subject.server;
        if servers.contains(&server) {
            continue;
        }
        servers.push(server);
        let own = tools.iter().enumerate();
        let own: Vec<_> = own
            .filter(|(_, other)| other.subject.server == server)
            .collect();
        let names = own.iter().map(|(_, tool)| tool.subject.name);
        let found = evidence(names).and_then(|(place, word)| Some((own.get(place)?, word)));
        if let Some(((index, tool), word)) = found {
            Notes::new(tool, *index, findings).add(Code::StatefulServer, word);
        }
    }
}

fn evidence<'a>(names: impl Iterator<Item = &'a str>) -> Option<(usize, &'static str)> {
    // how many verbs take hold of each noun
    let mut verbs: HashMap<&'static str, Vec<&'static str>> = HashMap::new();
    for (index, name) in names.enumerate() {
        let words = split(name);
        let find = |among: &'static str| {
            let is_word = |known: &&str| words.iter().any(|word| is_form_of(word, known));
            among.split(' ').find(is_word)
        };
        if let Some(word) = find(HELD) {
            return Some((index, word));
        }
        if let Some((noun, verb)) = find(HOLDABLE).zip(find(HOLDING)) {
            let known = verbs.entry(noun).or_default();
            if !known.contains(&verb) {
                known.push(verb);
            }
            if known.len() > 1 {
                return Some((index, noun));
            }
        }
    }
    None
}

/// Returns `true` if a word is this one, or its plural.
fn is_form_of(word: &str, known: &str) -> bool {
    same(word, known)
        || word
            .strip_suffix(['s', 'S'])
            .is_some_and(|word| same(word, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_one_client_holds_shows_a_stateful_server() {
        let rows = "
list browser_navigate => 1 browser
fetchCursor => 0 cursor
sequentialthinking => 0 sequentialthinking
new_page open_page close_page => 2 page
start_session end_sessions => 1 session
get_page list_pages open_page =>
open_page close_session =>
read_file write_file git_diff git_commit open_issue close_issue get_current_time =>
create_entities read_query stop_order list_sessions =>";
        for (names, expected) in rows.lines().filter_map(|row| row.split_once(" =>")) {
            let found = evidence(names.split(' '));
            let found = found.map_or_else(String::new, |(at, word)| format!(" {at} {word}"));
            assert_eq!(found, expected, "{names}");
        }
    }
}
