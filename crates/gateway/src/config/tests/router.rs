//! What is said of the router and of what it looks at: read, and refused.

use std::time::Duration;

use callward::router::StrategyName;
use callward::router::affinity::{AffinityKey, WithoutSession};

use super::{are_refused, parse};

#[test]
fn what_makes_no_sense_is_refused_at_its_line_and_key() {
    are_refused(
        r#"
[router] ⏎ strategy = "best" # router.strategy: `capability`
[router] ⏎ cost_budget = -1 # router.cost_budget: `costHint`
[router] ⏎ cost_budget = nan # router.cost_budget: 0 or more
[router] ⏎ budget = 1 # router.budget: `cost_budget`
[router.affinity] ⏎ by = "account" # router.affinity.by: a JSON Pointer into the arguments
[router.affinity] ⏎ ttl = 30 # router.affinity.ttl: "30s"
[router.affinity] ⏎ ttl = "10ms" # router.affinity.ttl: below 1 s
[router.affinity] ⏎ ttl = "8d" # router.affinity.ttl: above 7 days
[router.affinity] ⏎ without_session = "refuse" # router.affinity.without_session: `by_principal`
[router] ⏎ min_available = 101 # router.min_available: 100 percent
[router] ⏎ ping = false # router.ping: expected a table
[router.ping] ⏎ interval = "0s" # router.ping.interval: below 1 ms
[router.ping] ⏎ every = 1 # router.ping.every: `interval`
"#,
    );
}

#[test]
fn no_fault_of_the_router_hides_another() {
    let error = parse(
        "[router]\nmin_available = 101\n[router.ping]\nenabled = false\ninterval = \"0s\"\n\
         every = \"0s\"\n[servers.a]\ncommand = \"x\"\nzone = \" \"\ncost_factor = -0.5\n\
         capabilities = [\"gpu\", \"\"]\n",
    )
    .err()
    .unwrap();
    let found: Vec<_> = error
        .faults()
        .iter()
        .map(|fault| (fault.line.unwrap(), fault.key.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (2, "router.min_available"),
            (5, "router.ping.interval"),
            (6, "router.ping.every"),
            (9, "servers.a.zone"),
            (10, "servers.a.cost_factor"),
            (11, "servers.a.capabilities.2"),
        ],
        "{error}"
    );
}

#[test]
fn every_setting_of_the_router_is_read_and_shown() {
    let text = "\
[router]
strategy = \"affinity\"
cost_budget = 2.5
min_available = 21

[router.affinity]
by = \"/account/id\"
ttl = \"10m\"
without_session = \"by_principal\"

[router.ping]
interval = \"22s\"

[servers.a]
command = \"x\"
capabilities = [\"gpu\"]
zone = \"eu\"
cost_factor = 0.5
";
    let config = parse(text).unwrap();
    let router = &config.router;
    assert_eq!(router.layer.strategy, StrategyName::Affinity);
    assert_eq!(router.layer.cost_budget, Some(2.5));
    let affinity = &router.layer.affinity;
    assert_eq!(AffinityKey::to_string(&affinity.by), "/account/id");
    assert_eq!(affinity.without_session, WithoutSession::ByPrincipal);
    assert_eq!(router.layer.min_available, 21);
    let ping = router.ping.get().unwrap();
    assert_eq!(ping.interval, Duration::from_secs(22));

    // what is shown is what was written
    let expected = serde_json::json!({
        "strategy": "affinity", "cost_budget": 2.5, "min_available": 21,
        "affinity.by": "/account/id", "affinity.ttl": "10m",
        "affinity.without_session": "by_principal",
        "ping.interval": "22s",
    });
    assert_eq!(config.changed()["router"], expected);
    let server = config.changed_of(&config.servers[0]);
    let keys: Vec<_> = server.keys().map(String::as_str).collect();
    assert_eq!(keys, ["capabilities", "cost_factor", "zone"]);
}

#[test]
fn pings_may_be_turned_off() {
    let config = parse("[router.ping]\nenabled = false\n[servers.a]\ncommand = \"x\"\n").unwrap();
    assert_eq!(config.router.ping.get(), None);
    assert_eq!(config.changed()["router"]["ping.enabled"], false);
}
