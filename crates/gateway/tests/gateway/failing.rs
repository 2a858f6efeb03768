//! Servers that die, drop connections or write what they should not: their own calls fail clearly,
//! they come back, and the others go on.

use callward::ToolDefinition;
use callward_chaos::Ledger;
use callward_testkit::hostile::peer::{Peer, Reply};
use callward_testkit::hostile::{self, Era};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::scripted::{Script, tool};
use crate::support::{Gateway, answered, http, result, said, sample, serve, signal, until, within};

/// The process behind the doomed server.
async fn pid(gateway: &Gateway) -> u32 {
    let stats = gateway.stats("doomed").await;
    u32::try_from(stats["pid"].as_u64().unwrap()).unwrap()
}

/// Builds this many different reports at once.
async fn reports(gateway: &Gateway, tool: &str, count: usize, delay_ms: u32) -> Vec<Value> {
    let report = |n: usize| json!({"region": format!("r{n}"), "delay_ms": delay_ms});
    join_all((0..count).map(|n| gateway.call(tool, report(n)))).await
}

#[tokio::test]
async fn a_killed_child_fails_only_its_own_calls_and_comes_back() {
    let two = sample("doomed") + &sample("other");
    // without retries, so that each call ends as its one attempt
    let gateway = Gateway::configured(&format!("[retry]\nmax_attempts = 1\n{two}")).await;
    let old = pid(&gateway).await;
    let kill = async {
        gateway.running("doomed", 8).await;
        signal("-KILL", old).await;
    };
    let all = async {
        tokio::join!(
            reports(&gateway, "doomed__sales_report", 8, 60_000),
            reports(&gateway, "other__sales_report", 8, 3_000),
            kill
        )
    };
    let (doomed, others, ()) = within("every call's end", all).await;
    for answer in &doomed {
        assert_eq!(answer["error"]["kind"], "connection_lost", "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("server doomed"), "{message}");
        assert!(message.contains("SIGKILL"), "{message}");
    }
    for answer in &others {
        result(answer);
    }
    until("the server is back", || async {
        let now = &gateway.stats("doomed").await["pid"];
        (now.is_number() && *now != old).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_breaker_of_a_tool_that_drops_connections_opens_alone() {
    let tools = ["sick", "well"].map(|name| tool(name, true).to_string());
    let tools = tools.map(|tool| ToolDefinition::from_json(tool).unwrap());
    let peer = Peer::start(Era::Legacy, &tools, Ledger::new());
    let peer = peer.await.unwrap();
    let json = "content-type: application/json\r\n";
    peer.plays(move |_| {
        Reply::bytes(format!(
            "HTTP/1.1 200 OK\r\n{json}content-length: 9\r\n\r\n{{"
        ))
    });
    // with more time than this, calls of the sick tool would wait for its next probe, half a minute
    let config = format!(
        "call_deadline = \"20s\"\n[servers.two]\nurl = {:?}\ninstances = \"shared\"\n",
        peer.url()
    );
    let gateway = Gateway::configured(&config).await;
    let call = |tool: &'static str, call: usize| gateway.call(tool, json!({ "call": call }));
    let sick = join_all((0..24).map(|key| call("two__sick", key))).await;
    let is_lost = |answer: &Value| answer["error"]["kind"] == "connection_lost";
    assert!(sick.iter().any(is_lost), "{sick:?}");
    // what several callers lose within a moment counts once: it takes some that come after it
    for key in 24..2_000 {
        let answer = call("two__sick", key).await;
        if answer.to_string().contains("breaker_open") {
            break;
        }
    }
    peer.plays(move |id| Reply::http(200, json, &hostile::result(id, &json!({"content": []}))));
    for answer in join_all((0..40).map(|key| call("two__well", key))).await {
        result(&answer);
    }
    for breaker in gateway.json::<Vec<Value>>("/api/breakers").await {
        let open = breaker["scope"] == "tool" && breaker["tool"] == "sick";
        let state = if open { "open" } else { "closed" };
        assert_eq!(breaker["state"], state, "{breaker}");
    }
}

#[tokio::test]
async fn a_line_that_is_not_a_message_is_logged_once_as_a_warning() {
    let lines = [
        "oops",
        "{",
        r"\377",
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
    ];
    for line in lines {
        let call = format!("printf '{line}\\n'; printf '{line}\\n'; says here");
        let script = Script {
            call: &call,
            ..Script::of_one("get_city")
        };
        let config = script.server("shop") + "instances = \"shared\"\n";
        let gateway = Gateway::configured(&config).await;
        assert_eq!(
            said(&gateway.call("shop__get_city", json!({})).await),
            "here"
        );
        let log = gateway.stopped().await;
        let mut logged = log.lines();
        let warning = logged.find(|line| line.contains("a line that is not a message"));
        let warning = warning.unwrap_or_else(|| panic!("{line}: {log}"));
        assert!(
            warning.contains(" WARN ") && warning.contains("error="),
            "{log}"
        );
        assert!(!logged.any(|line| line.contains("not a message")), "{log}");
    }
}

#[tokio::test]
async fn last_words_are_for_operators_only_and_without_secrets() {
    let shop = Script {
        call: r#"echo "famous $PLAIN, no $SHOP_URL: pa55, token=t0k3n" >&2; exit 7"#,
        ..Script::counting(&json!([tool("pay", false)]))
    };
    let shop = shop.server("shop");
    let config = format!(
        "{}{shop}era = \"legacy\"\ninstances = \"shared\"\n\
         [servers.shop.env]\nPLAIN = \"hunter2\"\nSHOP_URL = \"postgres://ada:pa55@db/shop\"\n\
         [servers.dead]\ncommand = \"sh\"\nargs = ['-c', 'echo \"famous $PLAIN $0\" >&2; exit 5', '${{env:KEY}}']\n\
         [servers.dead.env]\nPLAIN = \"hunter2\"\n",
        sample("orders")
    );
    let (mut command, _file) = serve(&config);
    command.args(["--log", "debug"]).env("KEY", "p0sitional");
    let gateway = Gateway::starting(command, None, None).await;
    let failed = until("the loss of the call", || async {
        let answer = gateway.mcp("shop__pay", json!({})).await.to_string();
        answer.contains("exit status: 7").then_some(answer)
    })
    .await;
    assert!(!failed.contains("famous"), "{failed}");

    let mut all = vec![failed];
    for (url, is_told) in [
        (gateway.public("/readyz"), false),
        (gateway.at("/readyz"), true),
        (gateway.at("/api/servers"), true),
        (gateway.at("/api/missing"), true),
    ] {
        let shown = if is_told { "exit status: 5" } else { "dead" };
        let body = until(&url, || async {
            let (_, body) = gateway.get_url(&url).await;
            body.contains(shown).then_some(body)
        })
        .await;
        assert_eq!(body.contains("famous [redacted]"), is_told, "{url}: {body}");
        assert_eq!(body.contains("exit status: 5"), is_told, "{url}: {body}");
        all.push(body);
    }
    // other users of the machine may connect, and see no errors
    let (_, ready) = answered(http().get(gateway.at("/readyz"))).await;
    assert!(
        ready.contains("\"set\":\"dead\"") && !ready.contains("exit status"),
        "{ready}"
    );
    let log = gateway.stopped().await;
    let lines = log.lines().filter(|line| line.contains("famous"));
    assert!(lines.count() > 1, "{log}");
    all.push(log);
    for (said, secret) in all.iter().flat_map(|said| {
        ["hunter2", "pa55", "t0k3n", "ada", "p0sitional"].map(|secret| (said, secret))
    }) {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}
