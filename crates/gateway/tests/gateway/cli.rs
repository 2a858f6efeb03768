//! What the other commands print, and how they end.

use serde_json::{Value, json};

use crate::support::{CALLWARD, Gateway, callward, ends, text, within};

fn sample<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &["--", CALLWARD, "sample"]].concat()
}

#[tokio::test]
async fn a_call_prints_its_result_and_what_became_of_it() {
    let done = ends(&sample(&["call", "get_order", r#"{"order_id": 1}"#])).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    let order: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(order["item"], "lamp");
    let said = text(&done.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.starts_with("read_only  server callward  cache miss  attempts 1  "),
        "{said}"
    );

    let raw = ends(&sample(&[
        "call",
        "--json",
        "get_order",
        r#"{"order_id": 1}"#,
    ]))
    .await;
    let raw: Value = serde_json::from_slice(&raw.stdout).unwrap();
    assert_eq!(raw["structuredContent"]["item"], "lamp");
}

#[tokio::test]
async fn a_call_that_fails_says_why_and_ends_with_1() {
    let tool_error = ends(&sample(&["call", "get_order", r#"{"order_id": 99}"#])).await;
    assert_eq!(tool_error.status.code(), Some(1));
    assert_eq!(text(&tool_error.stdout), "no order 99\n");

    let fault = ends(&sample(&[
        "call",
        "charge_card",
        r#"{"order_id": 1, "cents": 5}"#,
    ]))
    .await;
    assert_eq!(fault.status.code(), Some(1));
    assert!(
        text(&fault.stderr).contains("attempts 1"),
        "{}",
        text(&fault.stderr)
    );

    let unknown = ends(&sample(&["call", "get_ordr"])).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        text(&unknown.stderr).contains("no tool \"get_ordr\""),
        "{}",
        text(&unknown.stderr)
    );

    let malformed = ends(&sample(&["call", "get_order", "[1]"])).await;
    assert_eq!(malformed.status.code(), Some(2));
}

#[tokio::test]
async fn a_running_gateway_answers_call_tools_and_explain() {
    let gateway = Gateway::sample().await;
    let url = gateway.admin.as_str();
    for cache in ["miss", "hit"] {
        let args = [
            "call",
            "orders__get_order",
            r#"{"order_id": 1}"#,
            "--url",
            url,
        ];
        let done = ends(&args).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(
            text(&done.stderr).contains(&format!("cache {cache}")),
            "{}",
            text(&done.stderr)
        );
    }
    let tools = ends(&["tools", "--json", "--url", url]).await;
    assert_eq!(text(&tools.stdout).lines().count(), 9);
    let explained = ends(&["explain", "orders.get_order", "--url", url]).await;
    assert!(
        text(&explained.stdout).contains("orders-replica"),
        "{}",
        text(&explained.stdout)
    );
}

#[tokio::test]
async fn another_mcp_endpoint_is_asked_through_a_stack_of_the_command() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // the sample prints where it listens on standard error
    let log = std::fs::File::create(file.path()).unwrap();
    let mut endpoint = callward(&["sample", "--http", "127.0.0.1:0"]);
    let _endpoint = endpoint.stderr(log).spawn().unwrap();
    let url = crate::support::until("the address", || async {
        let said = std::fs::read_to_string(file.path()).unwrap();
        let line = said.lines().next()?;
        said.ends_with('\n')
            .then(|| line.rsplit(' ').next().unwrap().to_owned())
    })
    .await;
    let done = ends(&["call", "get_order", r#"{"order_id": 1}"#, "--url", &url]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("lamp"));
}

#[tokio::test]
async fn nothing_that_answers_is_said_with_what_to_do() {
    let done = ends(&["tools", "--url", "http://127.0.0.1:1/mcp"]).await;
    assert_eq!(done.status.code(), Some(1));
    assert!(
        text(&done.stderr).contains("callward serve"),
        "{}",
        text(&done.stderr)
    );
}

#[tokio::test]
async fn tools_are_listed_with_their_verdicts() {
    let done = ends(&sample(&["tools"])).await;
    let table = text(&done.stdout);
    assert!(!table.contains('\u{1b}'), "colour goes to terminals only");
    let cells = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut lines = table.lines();
    assert_eq!(
        cells(lines.next().unwrap()),
        [
            "tool", "effect", "safety", "cache", "retry", "confirm", "source"
        ]
    );
    let rows: Vec<_> = lines.map(cells).collect();
    for want in [
        [
            "get_order",
            "read_only",
            "safe",
            "learned:5m",
            "yes",
            "no",
            "declared",
        ],
        [
            "delete_order",
            "destructive",
            "dangerous",
            "never",
            "never",
            "yes",
            "declared",
        ],
        [
            "charge_card",
            "mutating",
            "moderate",
            "never",
            "never",
            "no",
            "declared",
        ],
    ] {
        assert!(rows.iter().any(|row| row == &want), "{want:?} in\n{table}");
    }
    assert_eq!(rows.len(), 9);
}

#[tokio::test]
async fn a_tool_is_explained_with_sources_reasons_and_what_confirmation_means() {
    let done = ends(&sample(&["explain", "delete_order"])).await;
    let said = text(&done.stdout);
    for part in [
        "destructive",
        "destructiveHint",
        "declared",
        "confirm  yes",
        "no approval layer",
    ] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let read = ends(&sample(&["explain", "get_order"])).await;
    assert!(
        !text(&read.stdout).contains("approval"),
        "{}",
        text(&read.stdout)
    );
    let json = ends(&sample(&["explain", "--json", "delete_order"])).await;
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["confirm"], true);
    let hints = json["hints"].as_array().unwrap();
    let destructive = hints
        .iter()
        .find(|hint| hint["hint"] == "destructiveHint")
        .unwrap();
    assert_eq!(destructive["source"], "declared", "{json}");
    assert!(destructive["reason"].is_string(), "{json}");
}

#[tokio::test]
async fn a_config_is_checked_without_running_it() {
    let good = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        good.path(),
        "[servers.a]\nurl = \"http://127.0.0.1:1/mcp\"\n",
    )
    .unwrap();
    let path = good.path().to_str().unwrap();
    let done = ends(&["serve", "--config", path, "--check"]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(
        text(&done.stdout).contains("http://127.0.0.1:1/mcp"),
        "{}",
        text(&done.stdout)
    );
    let done = ends(&["serve", "--config", path, "--check", "--json"]).await;
    let checked: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (&checked["ok"], &checked["servers"][0]["id"]),
        (&json!(true), &json!("a"))
    );

    let absent = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        absent.path(),
        "[servers.a]\ncommand = \"no-such-program\"\n",
    )
    .unwrap();
    let path = absent.path().to_str().unwrap();
    let done = ends(&["serve", "--config", path, "--check", "--json"]).await;
    let checked: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (done.status.code(), &checked["ok"]),
        (Some(1), &json!(false))
    );

    let bad = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        bad.path(),
        "[cache]\nmax_bites = 1\n[servers.a]\ncommand = \"x\"\n",
    )
    .unwrap();
    let path = bad.path().to_str().unwrap();
    let done = ends(&["serve", "--config", path, "--check"]).await;
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(
        said.contains(&format!("{path}:2:1: `cache.max_bites`: unknown field")),
        "{said}"
    );
    assert!(said.contains("`max_bytes`"), "{said}");

    let missing = ends(&["serve", "--config", "/nonexistent.toml"]).await;
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        text(&missing.stderr).contains("/nonexistent.toml"),
        "{}",
        text(&missing.stderr)
    );
}

#[tokio::test]
async fn help_and_version_are_there() {
    let version = ends(&["--version"]).await;
    assert_eq!(
        text(&version.stdout),
        concat!("callward ", env!("CARGO_PKG_VERSION"), "\n")
    );
    for command in ["serve", "run", "call", "tools", "explain", "sample"] {
        let help = ends(&[command, "--help"]).await;
        assert!(help.status.success());
        assert!(
            text(&help.stdout).contains("callward "),
            "no example in {command} --help"
        );
    }
    let level = ends(&["--log", "loud", "demo"]).await;
    assert_eq!(level.status.code(), Some(2), "{}", text(&level.stderr));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn output_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let child = callward(&["serve", "--check"])
        .stdout(full)
        .spawn()
        .unwrap();
    let ended = within("the end", child.wait_with_output()).await.unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output cannot be written"), "{said}");
}

#[tokio::test]
async fn files_for_shells_have_each_command() {
    let bash = ends(&["completions", "bash"]).await;
    let folder = tempfile::tempdir().unwrap();
    let man = ends(&["man", folder.path().to_str().unwrap()]).await;
    assert!(man.status.success(), "{}", text(&man.stderr));
    for command in ["serve", "explain", "audit verify"] {
        let page = format!("callward-{}.1", command.replace(' ', "-"));
        let page = std::fs::read_to_string(folder.path().join(&page)).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
        let word = command.split(' ').next().unwrap();
        assert!(text(&bash.stdout).contains(word), "{command}");
    }
}

#[tokio::test]
async fn log_lines_are_json_on_request() {
    let config = tempfile::NamedTempFile::new().unwrap();
    let dead = "[http]\nlisten = \"127.0.0.1:0\"\n[servers.dead]\ncommand = \"false\"\n";
    std::fs::write(config.path(), dead).unwrap();
    let path = config.path().to_str().unwrap();
    let log = ["--log", "warn", "--log-format", "json"];
    let done = ends(&[&log[..], &["tools", "--config", path]].concat()).await;
    let said = text(&done.stderr);
    let lines = said.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.iter().any(|line| line["level"] == "WARN"), "{said}");
}
