//! What is said of the router and of what it looks at: read, and refused.

use std::time::Duration;

use callward::router::StrategyName;
use callward::router::affinity::{AffinityKey, WithoutSession};

use super::tests::{is_refused, parse};

#[test]
fn what_makes_no_sense_is_refused_at_its_line_and_key() {
    for (section, lines, key, expected) in [
        ("router", "strategy = \"best\"", "strategy", "`capability`"),
        ("router", "cost_budget = -1", "cost_budget", "`costHint`"),
        ("router", "cost_budget = nan", "cost_budget", "0 or more"),
        ("router", "budget = 1", "budget", "`cost_budget`"),
        (
            "router.affinity",
            "by = \"account\"",
            "by",
            "a JSON Pointer into the arguments",
        ),
        ("router.affinity", "ttl = 30", "ttl", "\"30s\""),
        ("router.affinity", "ttl = \"10ms\"", "ttl", "below 1 s"),
        ("router.affinity", "ttl = \"8d\"", "ttl", "above 7 days"),
        (
            "router.affinity",
            "max_keys = 0",
            "max_keys",
            "between 1 and",
        ),
        (
            "router.affinity",
            "without_session = \"refuse\"",
            "without_session",
            "`by_principal`",
        ),
        (
            "router.affinity",
            "fallback = \"affinity\"",
            "fallback",
            "another strategy",
        ),
        ("router.health", "faults = -1", "faults", "-1"),
        ("router.health", "outlier = 101", "outlier", "100 points"),
        ("router.health", "window = \"2d\"", "window", "above a day"),
        ("router.health", "min_calls = 0", "min_calls", "is 0"),
        ("router.health", "min_servers = 1", "min_servers", "below 2"),
        (
            "router.health",
            "max_ejected = 0",
            "max_ejected",
            "`outlier = 0` eject nobody",
        ),
        (
            "router.health",
            "max_ejected = 0.3",
            "max_ejected",
            "floating point",
        ),
        (
            "router.health",
            "eject_time = \"0s\"",
            "eject_time",
            "below 1 ms",
        ),
        (
            "router.health",
            "max_eject_time = \"10s\"",
            "max_eject_time",
            "below eject_time",
        ),
        (
            "router.health",
            "slow_start = \"2d\"",
            "slow_start",
            "above a day",
        ),
        (
            "router.health",
            "slow_start_floor = 0",
            "slow_start_floor",
            "between 1 and 100",
        ),
        ("router.health", "panic = 101", "panic", "100 percent"),
        ("router.health", "ping = false", "ping", "expected struct"),
        (
            "router.health.ping",
            "interval = \"0s\"",
            "interval",
            "below 1 ms",
        ),
        ("router.health.ping", "jitter = 101", "jitter", "above 100"),
        (
            "router.health.ping",
            "timeout = \"2d\"",
            "timeout",
            "above a day",
        ),
        ("router.health.ping", "fall = 0", "fall", "is 0"),
        ("router.health.ping", "rise = 0", "rise", "is 0"),
        ("router.health.ping", "every = 1", "every", "`interval`"),
    ] {
        let text = format!("[{section}]\n{lines}\n");
        is_refused(&text, 2, &format!("{section}.{key}"), expected);
    }
}

#[test]
fn no_fault_of_the_router_hides_another() {
    let error = parse(
        "[router.health]\nwindow = \"0s\"\nmin_calls = 0\n[router.health.ping]\nenabled = false\n\
         fall = 0\nrise = 0\n[servers.a]\ncommand = \"x\"\nzone = \" \"\ncost_factor = -0.5\n\
         capabilities = [\"gpu\", \"\"]\n",
    )
    .unwrap_err();
    let found: Vec<_> = error
        .faults()
        .iter()
        .map(|fault| (fault.line.unwrap(), fault.key.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (2, "router.health.window"),
            (3, "router.health.min_calls"),
            (6, "router.health.ping.fall"),
            (7, "router.health.ping.rise"),
            (10, "servers.a.zone"),
            (11, "servers.a.cost_factor"),
            (12, "servers.a.capabilities.2"),
        ],
        "{error}"
    );
}

#[test]
fn every_setting_of_the_router_is_taken_and_told() {
    let text = "\
[router]
strategy = \"affinity\"
cost_budget = 2.5

[router.affinity]
by = \"/account/id\"
ttl = \"10m\"
max_keys = 11
without_session = \"by_principal\"
fallback = \"round_robin\"

[router.health]
faults = 12
outlier = 13
window = \"14s\"
min_calls = 15
min_servers = 16
max_ejected = 17
eject_time = \"18s\"
max_eject_time = \"19s\"
slow_start = \"0s\"
slow_start_floor = 20
panic = 21

[router.health.ping]
interval = \"22s\"
jitter = 23
timeout = \"24s\"
fall = 25
rise = 26

[servers.a]
command = \"x\"
capabilities = [\"gpu\"]
zone = \"eu\"
cost_factor = 0.5
";
    let config = parse(text).unwrap();
    let router = &config.router;
    assert_eq!(router.strategy, StrategyName::Affinity);
    assert_eq!(router.cost_budget, Some(2.5));
    let by = AffinityKey::to_string(&router.affinity.by);
    assert_eq!(by, "/account/id");
    let choice = router.affinity.without_session;
    assert_eq!(choice, WithoutSession::ByPrincipal);
    assert_eq!(router.health.outlier, Some(13));
    assert_eq!(router.health.max_eject_time, Duration::from_secs(19));
    let ping = router.health.ping.unwrap();
    assert_eq!((ping.fall, ping.rise, ping.jitter), (25, 26, 23));

    // what is told of it is what was written, key by key
    let mut told = toml::Table::new();
    for (key, value) in config.changed().router {
        let mut table = &mut told;
        let mut names: Vec<&str> = key.split('.').collect();
        let last = names.pop().unwrap();
        for name in names {
            let inner = table
                .entry(name)
                .or_insert_with(|| toml::Table::new().into());
            table = inner.as_table_mut().unwrap();
        }
        table.insert(last.into(), toml::Value::try_from(value).unwrap());
    }
    let written: toml::Table = text.parse().unwrap();
    assert_eq!(toml::Value::Table(told), written["router"]);
    let server = config.servers[0].changed();
    let keys: Vec<_> = server.keys().map(String::as_str).collect();
    assert_eq!(keys, ["capabilities", "cost_factor", "zone"]);
}

#[test]
fn health_may_be_turned_off_bit_by_bit() {
    let config = parse(
        "[router.health]\nfaults = 0\noutlier = 0\nslow_start = \"0s\"\npanic = 0\n\
         [router.health.ping]\nenabled = false\n[servers.a]\ncommand = \"x\"\n",
    )
    .unwrap();
    let health = config.router.health;
    assert_eq!(
        (health.faults, health.outlier, health.ping),
        (0, None, None)
    );
    assert_eq!(config.changed().router["health.ping.enabled"], false);
    // the first ejection may last longer than the usual most
    let config =
        parse("[router.health]\neject_time = \"10m\"\n[servers.a]\ncommand = \"x\"\n").unwrap();
    let most = config.router.health.max_eject_time;
    assert_eq!(most, Duration::from_secs(600));
}
