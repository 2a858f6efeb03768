//! `callward run`: a drop-in around one server.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::clients::greeting;
use crate::scripted::Script;
use crate::support::{
    CALLWARD, Pipe, callward, ends, file, registered, signal, text, until, within,
};

#[tokio::test]
async fn the_tools_are_those_of_the_wrapped_server_byte_for_byte() {
    let mut plain = Pipe::open(&["sample"]).await;
    let expected = plain.raw_tools().await;
    assert_eq!(expected.len(), 9);
    let server = ["--", CALLWARD, "sample"];
    let mut prefixed = Pipe::open(&[&["run", "--prefix", "shop"], &server[..]].concat()).await;
    let renamed = |tool: &String| tool.replacen("\"name\":\"", "\"name\":\"shop__", 1);
    let renamed: Vec<_> = expected.iter().map(renamed).collect();
    assert_eq!(prefixed.raw_tools().await, renamed);
    let mut wrapped = Pipe::open(&[&["run"], &server[..]].concat()).await;
    assert_eq!(wrapped.raw_tools().await, expected);
    // the first greeting may come before the server has said anything
    let hello = wrapped.request("initialize", greeting()).await;
    let guidance = &plain.hello["result"]["instructions"];
    assert!(guidance.is_string());
    assert_eq!(&hello["result"]["instructions"], guidance);
    assert!(plain.close().await);

    // plans come beside the list on request
    let list = wrapped.request("tools/list", json!({})).await;
    assert_eq!(list["result"].get("_meta"), None);
    let asked = json!({"_meta": {"io.callward/plans": true}});
    let list = wrapped.request("tools/list", asked).await;
    let plans = &list["result"]["_meta"]["io.callward/plans"];
    assert_eq!(plans.as_object().unwrap().len(), 9);
    for (member, expected) in [
        ("/delete_order/effect", json!("destructive")),
        ("/delete_order/confirm", json!(true)),
        ("/delete_order/sources/destructiveHint", json!("declared")),
        ("/delete_order/category", json!("delete")),
        ("/delete_order/annotations/destructiveHint", json!(true)),
        ("/get_order/safety", json!("safe")),
        ("/get_order/retry", json!("yes")),
    ] {
        assert_eq!(plans.pointer(member), Some(&expected), "{member}");
    }
    assert!(wrapped.close().await);
}

#[tokio::test]
async fn standard_output_carries_the_protocol_even_when_everything_is_logged() {
    let mut wrapped = Pipe::open(&["run", "--log", "trace", "--", CALLWARD, "sample"]).await;
    // the pipe refuses every line that is not a JSON-RPC message
    let charge = json!({"order_id": 1, "cents": 5});
    let answer = wrapped.call("charge_card", charge).await;
    assert!(answer["error"]["message"].is_string(), "{answer}");
    assert!(wrapped.close().await);
}

#[tokio::test]
async fn a_command_that_cannot_be_started_ends_run_with_an_error() {
    let not_executable = file("");
    let not_executable = not_executable.path().to_str().unwrap();
    let dies = ["sh", "-c", "echo no database >&2; exit 3"];
    for (program, why) in [
        (
            &["/nonexistent/mcp-server"][..],
            "No such file or directory",
        ),
        (&[not_executable], "make it executable"),
        (&dies, "ended (exit status: 3)"),
    ] {
        for (run, waits) in [
            (&["run", "--"][..], true),
            (&["run", "--"], false),
            (&["run", "--http", "127.0.0.1:0", "--"], false),
        ] {
            let mut command = callward(&[run, program].concat());
            if waits {
                command.stdin(Stdio::piped());
            }
            let mut child = command.spawn().unwrap();
            // a client that waits: the input stays open until the end
            let stdin = child.stdin.take();
            let done = within("the end", child.wait_with_output()).await.unwrap();
            drop(stdin);
            let said = text(&done.stderr);
            assert_eq!(done.status.code(), Some(1), "{said}");
            assert!(said.contains(program[0]) && said.contains(why), "{said}");
        }
    }
}

/// What is read is answered when `run` ends, whether its server has started or not.
#[tokio::test]
async fn calls_are_answered_within_the_drain_time_of_run() {
    // the first never answers
    let (starting, started) = (&["sleep", "600"][..], &[CALLWARD, "sample"][..]);
    for (server, by_signal, drain, delay_ms) in [
        (starting, true, "50ms", 60_000),
        (starting, false, "50ms", 60_000),
        (started, true, "50ms", 60_000),
        (started, false, "50ms", 60_000),
        // there is time for it to end
        (started, true, "10s", 1_000),
    ] {
        let config = file(format!("[http]\ndrain = {drain:?}\n"));
        let run = ["run", "--config", config.path().to_str().unwrap(), "--"];
        let mut pipe = Pipe::start(callward(&[&run[..], server].concat()));
        let hello = pipe.send("initialize", greeting()).await;
        if server == started {
            within("the start", pipe.answer(hello)).await;
        }
        let slow = json!({"region": "x", "delay_ms": delay_ms});
        let slow = json!({"name": "sales_report", "arguments": slow});
        let slow = pipe.send("tools/call", slow).await;
        pipe.request("ping", json!({})).await;
        match by_signal {
            true => signal("-TERM", pipe.child.id().unwrap()).await,
            false => pipe.stdin = None,
        }
        let answer = pipe.answer(slow).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let error = &answer["error"]["data"];
        let is_ended = answer["result"]["structuredContent"]["region"] == "x";
        assert_eq!(is_ended, delay_ms < 60_000, "{answer}");
        assert!(is_ended || error["kind"].is_string(), "{answer}");
        if server == starting {
            assert_eq!(error["kind"], "overloaded", "{answer}");
            assert_eq!(error["delivery"], "not_sent", "{answer}");
            pipe.answer(hello).await;
        }
        let status = within("the end", pipe.child.wait()).await.unwrap();
        assert!(status.success(), "{status}");
    }
}

#[tokio::test]
async fn the_end_of_the_input_logs_no_warning() {
    let orders = [CALLWARD, "sample"].map(str::to_owned).to_vec();
    for server in [orders, Script::of_one("get_city").command().to_vec()] {
        let args: Vec<_> = server.iter().map(String::as_str).collect();
        let args = [&["run", "--log", "info", "--"], &args[..]].concat();
        let mut wrapped = Pipe::open(&args).await;
        assert_ne!(wrapped.raw_tools().await.len(), 0);
        let mut stderr = wrapped.child.stderr.take().unwrap();
        assert!(wrapped.close().await);
        let mut said = String::new();
        stderr.read_to_string(&mut said).await.unwrap();
        assert!(said.contains(" INFO "), "{said}");
        assert!(!said.contains(" WARN "), "{said}");
    }
}

#[tokio::test]
async fn commands_find_run_over_http_by_its_config() {
    let [config, other] = ["[servers.shop]\ncommand = \"false\"\n", ""].map(file);
    let [path, other] = [&config, &other].map(|file| file.path().to_str().unwrap());
    let state = tempfile::tempdir().unwrap();
    let state_dir = ["--state-dir", state.path().to_str().unwrap()];
    let run = ["run", "--http", "127.0.0.1:0", "--config", path];
    let run = [&run[..], &state_dir, &["--", CALLWARD, "sample"]].concat();
    let _running = callward(&run).spawn().unwrap();
    until("the registration", || async {
        (!registered(state.path()).is_empty()).then_some(())
    })
    .await;
    for (config, expected) in [(path, r#""id":"shop""#), (other, "but others are")] {
        let servers = ["servers", "--json", "--config", config];
        let done = ends(&[&servers[..], &state_dir].concat()).await;
        let printed = format!("{}{}", text(&done.stdout), text(&done.stderr));
        assert!(printed.contains(expected), "{printed}");
    }
}
