//! A table of files that must be refused, and what is said about each; and of files that are fine.

mod defaults;
mod limits;
mod pages;
mod router;
mod servers;
mod telemetry;

use super::*;

pub(super) fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("t.toml"), text)
}

/// Demands that a file be refused with this one fault.
pub(super) fn is_refused(text: &str, line: usize, key: &str, expected: &str) {
    // the good server follows, so that lines are those of the fault alone
    let error = parse(&format!("{text}[servers.a]\ncommand = \"x\"\n"))
        .err()
        .unwrap();
    let [fault] = error.faults() else {
        panic!("one fault expected in {text:?}:\n{error}");
    };
    assert_eq!(fault.line, Some(line), "{text:?}: {error}");
    assert_eq!(fault.key, key, "{text:?}: {error}");
    assert!(fault.message.contains(expected), "{text:?}: {error}");
    assert!(
        error.to_string().starts_with(&format!("t.toml:{line}:")),
        "{error}"
    );
}

/// Demands that each file of a table be refused with the one fault that a comment names, at its
/// line. After `⏎`, and in an indented line, there is a further line of the file.
pub(super) fn are_refused(table: &str) {
    let files = table.replace("\n  ", " ⏎ ");
    for file in files.lines().filter(|file| !file.is_empty()) {
        let text = file.replace(" ⏎ ", "\n") + "\n";
        let fault = |(number, line): (usize, &'_ str)| {
            let (key, expected) = line.split_once(" # ")?.1.split_once(": ")?;
            Some((number, key.to_owned(), expected.to_owned()))
        };
        let faults: Vec<_> = (1..).zip(text.lines()).filter_map(fault).collect();
        let [(line, key, expected)] = &faults[..] else {
            panic!("one fault expected in {file:?}");
        };
        is_refused(&text, *line, key, expected);
    }
}

#[test]
fn bad_files_are_refused_with_line_key_and_what_was_expected() {
    are_refused(
        r#"
profile = "lax" # profile: `standard`, `strict`, `neurolink`, `mcpgate`, `epd`
# a comment ⏎ rules = 3 # rules: as a string
call_deadline = 120 # call_deadline: "30s"
call_deadline = "0s" # call_deadline: more than zero
colour = 1 # colour: `profile`
[http] ⏎ listen = "here" # http.listen: 127.0.0.1:7420
[http] ⏎ allowed_hosts = [] # http.allowed_hosts: at least one
[http] ⏎ allowed_hosts = ["h:http"] # http.allowed_hosts: a host
[http] ⏎ allowed_origins = ["here"] # http.allowed_origins: scheme
[http] ⏎ drain = "soon" # http.drain: "30s"
[http] ⏎ port = 1 # http.port: `listen`
[cache] ⏎ max_bytes = "much" # cache.max_bytes: 64MiB
[cache] ⏎ max_bytes = 10 ⏎ max_item_bytes = 11 # cache.max_item_bytes: at most
[cache] ⏎ partition = "all" # cache.partition: `principal` or `shared`
[retry] ⏎ max_attempts = 0 # retry.max_attempts: 1 or more
[cache] ⏎ stale_if_error = "400d" # cache.stale_if_error: a year
[cache] ⏎ settle = "500ms" # cache.settle: from 1s to 10m
[cache] ⏎ report = "yes" # cache.report: a boolean
[retry] ⏎ budget = 1.5 # retry.budget: 0.0 to 1.0
[retry] ⏎ max_pause = "0s" # retry.max_pause: need a pause
[retry] ⏎ jitter = "some" # retry.jitter: `decorrelated`
[retry] ⏎ budget = nan # retry.budget: 0.0 to 1.0
[breaker] ⏎ failures = -1 # breaker.failures: expected a whole number
[breaker] ⏎ open_for = "0s" # breaker.open_for: more than zero
[breaker] ⏎ failures = 0 # breaker.failures: together with
[breaker] ⏎ failure_rate = 50.0 # breaker.failure_rate: up to 1.0
[breaker] ⏎ slow_rate = 0.5 # breaker.slow_rate: `slow_after`
[breaker] ⏎ slow_after = "0s" # breaker.slow_after: every call would be slow
[breaker.server] ⏎ failures = 0 # breaker.server.failures: 1 or more
[discovery] ⏎ timeout = "1s" # discovery.timeout: 5 s or more
[router] ⏎ strategy = "best" # router.strategy: `least_connections`
"#,
    );
}

#[test]
fn a_text_that_is_not_toml_is_refused_at_its_line() {
    for (text, line, expected) in [
        ("profile = \"standard\"\n[http\n", 2, "unclosed table"),
        (
            "profile = \"strict\"\n\nprofile = \"epd\"\n",
            3,
            "another `profile`",
        ),
        (
            "[http]\nlisten = \"1\"\nlisten = \"2\"\n",
            3,
            "another `listen`",
        ),
        (
            "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n",
            1,
            "found JSON",
        ),
    ] {
        let error = parse(text).err().unwrap();
        assert_eq!(error.faults()[0].line, Some(line), "{error}");
        assert!(error.faults()[0].message.contains(expected), "{error}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"rules = \"standard\"\n# caf\xe9\n").unwrap();
    let error = Config::load(file.path(), Servers::Some)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains(":2:6: expected UTF-8 text"), "{error}");
}

#[test]
fn every_unknown_key_and_wrong_type_is_reported_at_once() {
    let error = parse(
        "call_deadline = 3\ncach = 1\n[http]\nlisten = 5\nport = 1\nmetrics = \"on\"\n\
         max_bodies = true\n[cache]\nburts = \"1s\"\nreport = 1\n[retry]\nmax_attempts = \"x\"\n\
         budget = 2.0\n[servers.a]\ncomand = \"x\"\nweight = \"y\"\nenv = { A = 1 }\n\
         [servers.a.tools.t]\nreadonlyHint = true\n[servers]\nb = 1\n",
    );
    let error = error.err().unwrap();
    let found: Vec<_> = error.faults().iter().map(|fault| &*fault.key).collect();
    let expected = [
        "call_deadline",
        "cach",
        "http.listen",
        "http.port",
        "http.metrics",
        "http.max_bodies",
        "cache.burts",
        "cache.report",
        "retry.max_attempts",
        "retry.budget",
        "servers.a.comand",
        "servers.a.weight",
        "servers.a.env.A",
        "servers.a.tools.t.readonlyHint",
        "servers.b",
    ];
    assert_eq!(found, expected, "{error}");
    for hint in ["`cache`?", "`burst`?", "`command`?", "`readOnlyHint`?"] {
        assert!(error.to_string().contains(hint), "{hint} in {error}");
    }
}

#[test]
fn a_file_without_servers_is_refused() {
    let error = parse("profile = \"strict\"\n").err().unwrap();
    assert_eq!(
        error.to_string().matches("[servers.NAME]").count(),
        1,
        "{error}"
    );
}

#[test]
fn every_problem_is_reported_in_the_order_of_the_file() {
    let error = parse("[retry]\nmax_attempts = 0\n[breaker]\nfailures = 0\n[servers.a]\n")
        .err()
        .unwrap();
    let lines: Vec<_> = error.faults().iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [Some(2), Some(4), Some(5)], "{error}");
}

#[test]
fn what_a_file_leaves_out_is_the_default() {
    let config = parse("[servers.a]\ncommand = \"x\"\n").unwrap();
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:7420");
    assert_eq!(config.profile, Profile::standard());
    assert_eq!(config.cache.layer.max_bytes, 64 << 20);
    let server = &config.servers[0];
    assert_eq!(server.prefix.as_deref(), Some("a"));
    assert_eq!((server.table.weight, server.table.max_concurrent), (50, 64));
}

#[test]
fn every_profile_is_known_by_its_name() {
    for profile in Profile::NAMES
        .iter()
        .flat_map(|name| Profile::by_name(name))
    {
        let text = format!(
            "profile = \"{}\"\n[servers.a]\ncommand = \"x\"\n",
            profile.name
        );
        assert_eq!(parse(&text).unwrap().profile, profile);
    }
    let error = parse("profile = \"stric\"\n[servers.a]\ncommand = \"x\"\n")
        .err()
        .unwrap();
    let said = error.to_string();
    assert!(said.contains(":1:11: `profile`"), "{said}");
    for name in Profile::NAMES {
        assert!(said.contains(&format!("`{name}`")), "{name} in {said}");
    }
}

#[test]
fn prefix_and_set_are_what_they_say() {
    let config = parse(
        "[servers.a]\ncommand = \"x\"\nset = \"s\"\n[servers.b]\nurl = \"http://h:1/mcp\"\nprefix = false\n\
         [servers.c]\ncommand = \"x\"\nprefix = \"p\"\n",
    )
    .unwrap();
    let prefixes: Vec<_> = config
        .servers
        .iter()
        .map(|server| server.prefix.as_deref())
        .collect();
    assert_eq!(prefixes, [Some("s"), None, Some("p")]);
}

#[test]
fn idempotent_writes_have_one_switch() {
    let config =
        parse("[cache]\nidempotent_writes = false\n[servers.a]\ncommand = \"x\"\n").unwrap();
    assert_eq!(config.profile.idempotent_ttl, None);
}

#[test]
fn an_address_may_be_a_port_or_a_name() {
    for (text, want) in [
        ("7420", "127.0.0.1:7420"),
        ("localhost:0", "127.0.0.1:0"),
        ("0.0.0.0:80", "0.0.0.0:80"),
        ("[::1]:80", "[::1]:80"),
    ] {
        assert_eq!(parse_listen(text).unwrap().to_string(), want);
    }
    assert!(parse_listen("example.org:80").is_err());
}
