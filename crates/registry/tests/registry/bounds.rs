//! Definitions that clients may be unable to read are left out, and only they.

use callward_core::{ReplicaSetId, ServerId, ToolDefinition};
use callward_registry::Registry;

/// Lists this definition beside a plain one; returns why it is not offered.
fn refused(definition: String) -> Option<String> {
    let registry = Registry::new();
    let plain = r#"{"name":"plain","inputSchema":{"type":"object"}}"#.to_owned();
    let definitions = [definition, plain].map(|text| ToolDefinition::from_json(text).unwrap());
    let (set, server) = (ReplicaSetId::new("s").unwrap(), ServerId::new("s").unwrap());
    registry.register(&set, &server, definitions.into());
    let catalogue = registry.catalogue();
    assert!(catalogue.find("s.plain").is_some());
    let reason = catalogue.refused().first().map(|it| it.reason.clone());
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
fn a_definition_nested_deeper_than_64_levels_is_refused() {
    assert_eq!(refused(nested(64)), None);
    assert!(refused(nested(65)).unwrap().contains("deeper than 64"));
}

#[test]
fn a_definition_larger_than_256_kb_is_refused() {
    assert_eq!(refused(sized(256 * 1024)), None);
    assert!(
        refused(sized(256 * 1024 + 1))
            .unwrap()
            .contains("larger than 262144")
    );
}

#[test]
fn an_oversized_list_does_not_displace_other_servers() {
    let registry = Registry::new();
    let list = |server: &str, count: usize, bytes: usize| {
        let odd = sized(bytes);
        let definitions = (0..count).map(|at| {
            let named = odd.replace(r#""odd""#, &format!(r#""tool_{at}""#));
            ToolDefinition::from_json(named).unwrap()
        });
        let (set, server) = (ReplicaSetId::new(server), ServerId::new(server));
        registry.register(&set.unwrap(), &server.unwrap(), definitions.collect());
    };
    // before the neighbour and after it
    list("a", 80, 200 * 1024);
    list("b", 80, 1024);
    let catalogue = registry.catalogue();
    assert_eq!(catalogue.entries().len(), 160);
    list("c", 80, 200 * 1024);
    let catalogue = registry.catalogue();
    let b = ReplicaSetId::new("b").unwrap();
    assert_eq!(catalogue.in_set(&b).count(), 80);
    let listed = catalogue.entries().iter().map(|tool| tool.listed().len());
    let listed: usize = listed.sum();
    // the names that clients see are a little longer
    assert!(listed <= (16 << 20) + 160 * 64, "{listed}");
    assert!(listed > 15 << 20, "{listed}");
    assert!(catalogue.refused()[0].reason.contains("16777216"));
}

#[test]
fn of_one_server_10_000_tools_are_offered() {
    let registry = Registry::new();
    let (set, server) = (ReplicaSetId::new("s").unwrap(), ServerId::new("s").unwrap());
    let named = (0..10_002).map(|at| format!(r#"{{"name":"tool_{at}","inputSchema":{{}}}}"#));
    let definitions = named.map(|text| ToolDefinition::from_json(text).unwrap());
    registry.register(&set, &server, definitions.collect());
    let catalogue = registry.catalogue();
    assert_eq!(catalogue.entries().len(), 10_000);
    let refused = catalogue.refused();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].tool.as_str(), "tool_10000");
    assert!(refused[0].reason.contains("more than 10000"));
}
