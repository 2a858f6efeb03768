//! Definitions that clients may be unable to read are left out, and only they.

use callward_core::{Method, ToolDefinition};

use crate::bed::{Bed, assert_refused, definition, server};

/// Lists this definition beside a plain one; returns why it is not offered.
fn refused(odd: String) -> Option<String> {
    let bed = Bed::default();
    let plain = r#"{"name":"plain","inputSchema":{"type":"object"}}"#.to_owned();
    bed.add("s", "s", [odd, plain].map(definition).into());
    let catalogue = bed.catalogue();
    assert!(catalogue.find("s.plain").is_some());
    let reason = bed.refusals().pop();
    assert_eq!(catalogue.find("s.odd").is_none(), reason.is_some());
    reason
}

/// A definition whose outermost object counts as the first level.
fn nested(levels: usize) -> String {
    let (open, close) = ("[".repeat(levels - 2), "]".repeat(levels - 2));
    format!(r#"{{"name":"odd","description":"[[\"[[","inputSchema":{{"x":{open}{close}}}}}"#)
}

fn sized(bytes: usize) -> String {
    let empty = r#"{"name":"odd","inputSchema":{"type":"object"},"description":""}"#;
    let text = "[".repeat(bytes - empty.len());
    empty.replace(r#""description":"""#, &format!(r#""description":"{text}""#))
}

#[test]
fn a_definition_too_deep_or_too_large_is_refused() {
    let largest = 256 * 1024;
    for (largest, beyond, reason) in [
        (nested(64), nested(65), "deeper than 64"),
        (sized(largest), sized(largest + 1), "exceeds 262144"),
    ] {
        assert_eq!(refused(largest), None);
        assert!(refused(beyond).unwrap().contains(reason), "{reason}");
    }
}

#[test]
fn an_oversized_list_does_not_displace_other_servers() {
    let bed = Bed::default();
    let list = |of: &str, bytes: usize| {
        let odd = sized(bytes);
        let named = (0..80).map(|at| odd.replace(r#""odd""#, &format!(r#""tool_{at}""#)));
        bed.add(of, of, named.map(definition).collect());
        bed.catalogue()
    };
    // before the neighbour and after it
    list("a", 200 * 1024);
    assert_eq!(list("b", 1024).entries().len(), 160);
    let catalogue = list("c", 200 * 1024);
    assert_eq!(catalogue.offered_by(&server("b")), 80);
    let entries = catalogue.entries().iter();
    let listed: usize = entries.map(|tool| tool.listed().len()).sum();
    // the names that clients see are a little longer
    assert!(listed <= (16 << 20) + 160 * 64, "{listed}");
    assert!(listed > 15 << 20, "{listed}");
    assert!(catalogue.refused()[0].reason.contains("16777216"));
}

#[test]
fn of_one_server_10_000_tools_are_offered() {
    let bed = Bed::default();
    let named = (0..10_002).map(|at| format!(r#"{{"name":"tool_{at}","inputSchema":{{}}}}"#));
    let methods = [ToolDefinition::method(Method::ListPrompts)];
    bed.add(
        "s",
        "s",
        methods.into_iter().chain(named.map(definition)).collect(),
    );
    assert_eq!(bed.catalogue().entries().len(), 10_000);
    let expected = "tool_10000: the server lists more than 10000";
    assert_refused(&bed.refusals(), &[expected]);
}
