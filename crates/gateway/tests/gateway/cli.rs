//! Commands: where they read and write, and what they print. That is in files in `tests/golden`:
//! `NAME.md` has commands with their output, and `NAME.in` the files they read.
//! `TRYCMD=overwrite` writes what is printed now; then replace what a case is not about by `...`
//! (lines) or `[..]` (a part of a line). A backslash is shown as `/`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use trycmd::TestCases;

use crate::support::{CALLWARD, Gateway, callward, ends, fed, text, until, within};

/// Cases in which a config or a command line finds the binary as `callward`.
pub(crate) fn cases(state: &Path) -> TestCases {
    let folder = Path::new(CALLWARD).parent().unwrap().to_path_buf();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(folder).chain(std::env::split_paths(&rest));
    let path = std::env::join_paths(path).unwrap();
    let cases = TestCases::new();
    cases
        .env("PATH", path.to_str().unwrap())
        .env("CALLWARD_STATE_DIR", state.to_str().unwrap())
        .env("CALLWARD_LOG", "off");
    cases
}

#[test]
fn commands_print_what_their_pages_show() {
    let state = tempfile::tempdir().unwrap();
    cases(state.path()).case("tests/golden/*.md").run();
}

/// Each page has a gateway of its own, with the config beside it or else the embedded sample; the
/// commands find it by its state directory.
#[tokio::test]
async fn commands_of_a_running_gateway_print_what_their_pages_show() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/running");
    let entries = std::fs::read_dir(folder).unwrap();
    let pages = entries.map(|entry| entry.unwrap().path());
    let pages: Vec<PathBuf> = pages
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    assert!(!pages.is_empty());
    for page in pages {
        let config = page.with_extension("in").join("gateway.toml");
        let gateway = match std::fs::read_to_string(config) {
            Ok(config) => Gateway::configured(&config.replace("callward", "CALLWARD")).await,
            Err(_) => Gateway::sample().await,
        };
        let cases = cases(gateway.state.path());
        let run = tokio::task::spawn_blocking(move || {
            cases.case(&page).run();
        });
        run.await.unwrap();
    }
}

#[tokio::test]
async fn a_result_goes_to_standard_output_and_all_else_to_standard_error() {
    let order = r#"{"order_id": 1}"#;
    let done = ends(&["call", "get_order", order, "--", CALLWARD, "sample"]).await;
    let result: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(result["item"], "lamp");
    assert_eq!(text(&done.stderr).lines().count(), 1, "{done:?}");

    let replay = &["replay", "--json", "--calls", "-"][..];
    let (calls, no_json) = ("{\"tool\":\"get_a\"}\nx\n", "standard input:1: is not JSON");
    let tools = "{\"name\":\n{\"name\":\"get_a\"}\n";
    for (args, input, out, err) in [
        (replay, calls, "\"calls\":1", "standard input:2: "),
        (&["lint"], tools, "in 1 tool", no_json),
    ] {
        let done = fed(args, input.as_bytes()).await;
        assert!(text(&done.stdout).contains(out), "{done:?}");
        assert!(text(&done.stderr).contains(err), "{done:?}");
    }
}

#[tokio::test]
async fn another_mcp_endpoint_is_asked_through_a_stack_of_the_command() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // the sample prints where it listens on standard error
    let log = std::fs::File::create(file.path()).unwrap();
    let mut endpoint = callward(&["sample", "--http", "127.0.0.1:0"]);
    let _endpoint = endpoint.stderr(log).spawn().unwrap();
    let url = until("the address", || async {
        let said = std::fs::read_to_string(file.path()).unwrap();
        let line = said.lines().next()?;
        said.ends_with('\n')
            .then(|| line.rsplit(' ').next().unwrap().to_owned())
    })
    .await;
    for (args, expected) in [
        (&["call", "get_order", r#"{"order_id": 1}"#][..], "lamp"),
        (&["annotate"], r#"{"name":"delete_order""#),
    ] {
        let done = ends(&[args, &["--url", &url]].concat()).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(text(&done.stdout).contains(expected), "{done:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn output_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut check = callward(&["serve", "--check"]);
    let child = check.stdout(full.unwrap()).spawn().unwrap();
    let ended = within("the end", child.wait_with_output()).await.unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output cannot be written"), "{said}");
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_a_command_quietly() {
    let mut command = callward(&["annotate"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut stderr = child.stderr.take().unwrap();
    // far more than any pipe holds
    let input = "{\"name\":\"get_user\"}\n".repeat(20_000);
    let fed = within("the input", stdin.write_all(input.as_bytes())).await;
    fed.unwrap();
    drop(stdin);
    let mut first = String::new();
    let read = within("a line", stdout.read_line(&mut first)).await;
    read.unwrap();
    assert!(first.starts_with("{\"name\":\"get_user\""), "{first}");
    drop(stdout);
    let mut said = String::new();
    let read = within("the end", stderr.read_to_string(&mut said)).await;
    read.unwrap();
    assert_eq!(said, "");
    let status = within("the end", child.wait()).await.unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn files_for_shells_have_each_command() {
    let bash = ends(&["completions", "bash"]).await;
    let folder = tempfile::tempdir().unwrap();
    let man = ends(&["man", folder.path().to_str().unwrap()]).await;
    assert!(man.status.success(), "{}", text(&man.stderr));
    for (command, page) in [
        ("serve", "callward-serve.1"),
        ("audit", "callward-audit-verify.1"),
    ] {
        let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
        assert!(text(&bash.stdout).contains(command), "{command}");
    }
}

#[tokio::test]
async fn under_chaos_naive_retries_run_things_twice_and_the_stack_does_not() {
    let done = ends(&["demo", "--chaos", "--json", "--calls", "4000"]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    let lines = text(&done.stdout).lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (sum, rows) = lines.split_last().unwrap();
    assert_eq!((rows.len(), &sum["calls"]), (5, &4000.into()));
    assert_eq!(sum["callward"]["duplicates"], 0, "{sum}");
    for side in ["naive", "callward"] {
        let all = ["done", "errors", "unknown"].map(|what| sum[side][what].as_u64().unwrap());
        assert_eq!(all.iter().sum::<u64>(), 4000, "{sum}");
        for row in rows.iter().filter(|row| row["effect"] != "read_only") {
            let (ran, done) = (&row[side]["executions"], &row[side]["done"]);
            assert!(ran.as_u64() >= done.as_u64(), "{row}");
        }
    }
    // the chaos was there, and is reported
    assert!(sum["naive"]["duplicates"].as_u64().unwrap() > 20, "{sum}");
    assert!(sum["callward"]["unknown"].as_u64().unwrap() > 20, "{sum}");
}

#[tokio::test]
async fn each_line_of_standard_error_is_json_if_asked() {
    let ended = ends(&["lint", "/nowhere", "--log-format", "json"]).await;
    let line: Value = serde_json::from_slice(&ended.stderr).unwrap();
    assert_eq!(line["level"], "ERROR", "{line}");
}
