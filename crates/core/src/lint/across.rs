//! Tools of one server beside each other.

use std::collections::HashMap;

use super::{Candidate, Code, Finding, Notes, suspicious};

pub(super) fn check(tools: &[Candidate<'_>], findings: &mut Vec<Finding>) {
    // the first tool of each spelling, by server
    let mut seen: HashMap<(Option<&str>, String), usize> = HashMap::new();
    let mut exact: HashMap<(Option<&str>, &str), usize> = HashMap::new();
    for (index, tool) in tools.iter().enumerate() {
        let (server, name) = (tool.subject.server, tool.subject.name);
        let mut notes = Notes::new(tool, index, findings);
        if exact.insert((server, name), index).is_some() {
            notes.add(Code::DuplicateName, "");
            continue;
        }
        let first = *seen.entry((server, plain(name))).or_insert(index);
        if first != index
            && let Some(other) = tools.get(first)
        {
            notes.add(Code::SimilarNames, other.subject.name);
        }
    }
}

/// Finds names that look like an earlier one of another server, and are not the same.
pub(super) fn look_alikes(tools: &[Candidate<'_>], findings: &mut Vec<Finding>) {
    let mut seen: HashMap<String, &Candidate<'_>> = HashMap::new();
    for (index, tool) in tools.iter().enumerate() {
        let first = *seen
            .entry(suspicious::look(tool.subject.name))
            .or_insert(tool);
        let (first, subject) = (first.subject, tool.subject);
        if first.server != subject.server && first.name != subject.name {
            let found = format_args!("`{}` of {}", first.name, first.server.unwrap_or("another"));
            Notes::new(tool, index, findings).add(Code::LookAlikeName, found);
        }
    }
}

/// The name without case and separators. Those between digits stay: `v1_2` is not `v12`.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut parted = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            parted = true;
            continue;
        }
        let after_digit = plain.chars().next_back().is_some_and(char::is_numeric);
        if parted && after_digit && c.is_numeric() {
            plain.push('_');
        }
        parted = false;
        plain.extend(c.to_lowercase());
    }
    if plain.is_empty() {
        name.to_owned()
    } else {
        plain
    }
}
