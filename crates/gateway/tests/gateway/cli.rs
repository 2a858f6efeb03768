//! Commands: where they read and write. What they print is in `tests/golden`.

use serde_json::Value;

use crate::support::{CALLWARD, callward, ends, fed, text, until, within};

#[tokio::test]
async fn a_result_goes_to_standard_output_and_all_else_to_standard_error() {
    let order = r#"{"order_id": 1}"#;
    let done = ends(&["call", "get_order", order, "--", CALLWARD, "sample"]).await;
    let result: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(result["item"], "lamp");
    assert_eq!(text(&done.stderr).lines().count(), 1, "{done:?}");

    let calls = "{\"tool\":\"get_a\"}\nx\n";
    let done = fed(&["replay", "--json", "--calls", "-"], calls.as_bytes()).await;
    assert!(serde_json::from_slice::<Value>(&done.stdout).is_ok());
    assert!(
        text(&done.stderr).contains("standard input:2: "),
        "{done:?}"
    );

    let done = fed(&["lint"], b"{\"name\":\n{\"name\":\"get_a\"}\n").await;
    assert!(text(&done.stdout).contains("in 1 tool"), "{done:?}");
    let expected = "standard input:1: is not JSON";
    assert!(text(&done.stderr).contains(expected), "{done:?}");
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
    let done = ends(&["call", "get_order", r#"{"order_id": 1}"#, "--url", &url]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("lamp"));
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
async fn under_chaos_naive_retries_run_things_twice_and_the_stack_does_not() {
    for seed in ["1", "2"] {
        let args = [
            "demo", "--chaos", "--json", "--calls", "4000", "--seed", seed,
        ];
        let done = ends(&args).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        let lines: Vec<Value> = text(&done.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let (sum, rows) = lines.split_last().unwrap();
        assert_eq!(rows.len(), 5);
        assert_eq!(sum["calls"], 4000);
        assert_eq!(sum["callward"]["duplicates"], 0, "{sum}");
        for side in ["naive", "callward"] {
            let count = |what: &str| sum[side][what].as_u64().unwrap();
            assert_eq!(
                count("done") + count("errors") + count("unknown"),
                4000,
                "{sum}"
            );
            for row in rows.iter().filter(|row| row["effect"] != "read_only") {
                let executions = row[side]["executions"].as_u64().unwrap();
                assert!(executions >= row[side]["done"].as_u64().unwrap(), "{row}");
            }
        }
        // the chaos was there, and is reported
        assert!(sum["naive"]["duplicates"].as_u64().unwrap() > 20, "{sum}");
        assert!(sum["callward"]["unknown"].as_u64().unwrap() > 20, "{sum}");
    }
}
