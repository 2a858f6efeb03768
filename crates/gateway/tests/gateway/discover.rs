//! Servers whose lists are long, endless, silent or invalid, beside an honest one.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::scripted::{Script, tool};
use crate::support::{Gateway, ends, file, said, text};

/// 100 tools a page, and the number of the next page as cursor, up to 50.
const PAGES: &str = r#"case $line in *tools/list*)
    n=${line#*'"cursor":"'}; n=${n%%'"'*}
    case $n in ''|*[!0-9]*) n=0 ;; esac
    tools=$(awk -v n="$n" 'BEGIN {
        for (i = 0; i < 100; i++)
            printf "%s{\"name\":\"get_%d\",\"inputSchema\":{\"type\":\"object\"}}",
                i ? "," : "[", n * 100 + i
        printf n < 49 ? "],\"nextCursor\":\"" (n + 1) "\"" : "]" }') ;;
esac"#;
const SILENT: &str = "case $line in *tools/list*) continue ;; esac";
const CIRCLE: &str = r#"tools='[],"nextCursor":"a"'"#;
const HUGE: &str = r#"case $line in *tools/list*)
    head -c 104857600 /dev/zero | tr '\0' x; echo; continue ;;
esac"#;

/// Two references on each of 100 levels: 2^100 schemas once they are followed.
fn deep() -> Value {
    let level = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/l{}", n + 1)});
        let both = json!({"properties": {"a": next, "b": next}});
        (format!("l{n}"), both)
    };
    let mut levels: serde_json::Map<_, _> = (0..100).map(level).collect();
    levels.insert("l100".to_owned(), json!({"type": "string"}));
    let mut deep = tool("get", true);
    deep["inputSchema"] = json!({
        "type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": levels,
    });
    json!([deep])
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_lists_are_bounded_and_an_honest_server_serves_on() {
    let plays = |name: &str, each| {
        let script = Script {
            each,
            ..Script::of_one("get")
        };
        script.server(name)
    };
    let config = [
        "[discovery]\ntimeout = \"5s\"\n".to_owned(),
        Script::of_one("get").server("honest"),
        plays("pages", PAGES),
        plays("silent", SILENT),
        plays("circle", CIRCLE),
        plays("huge", HUGE),
        Script::counting(&deep()).server("deep") + "check_arguments = true\n",
    ];
    let gateway = Gateway::configured(&config.concat()).await;
    let stop = CancellationToken::new();
    let calls = async {
        let mut answered = 0;
        while !stop.is_cancelled() {
            let answer = gateway.mcp("honest__get", json!({"n": answered})).await;
            assert!(said(&answer).starts_with("run "), "{answer}");
            answered += 1;
        }
        answered
    };
    let discovers = async {
        let done = ends(&[&["discover", "--json"][..], &gateway.here()].concat()).await;
        stop.cancel();
        done
    };
    // servers that are started for the command have the same time
    let hangs = "[servers.hangs]\ncommand = \"sleep\"\nargs = [\"600\"]\n";
    let own = file([&config[0], &*config[1], hangs].concat());
    let starts = ["discover", "--config", own.path().to_str().unwrap()];
    let (answered, done, started) = tokio::join!(calls, discovers, ends(&starts));
    let printed = text(&started.stdout);
    let lines: Vec<_> = printed.lines().collect();
    assert!(
        lines[0].starts_with("honest of honest: 1 tool in "),
        "{printed}"
    );
    let last = "hangs: not listed: it does not answer: no listing ended in 5 s";
    assert!(lines.last().unwrap().starts_with(last), "{printed}");
    assert!(answered > 0);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    let outcomes: BTreeMap<String, Value> = text(&done.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|outcome| (outcome["server"].as_str().unwrap().to_owned(), outcome))
        .collect();
    for (server, part) in [
        ("silent", "within 5 s"),
        ("circle", "a cursor came twice"),
        ("huge", ""),
    ] {
        let error = outcomes[server]["error"].as_str().unwrap_or("no error");
        assert!(
            error != "no error" && error.contains(part),
            "{server}: {error}"
        );
    }
    assert_eq!(
        outcomes["pages"]["listed"],
        5000,
        "{:.200}",
        outcomes["pages"].to_string()
    );
    let refused = &outcomes["deep"]["refused"][0]["reason"];
    assert!(
        refused
            .as_str()
            .unwrap()
            .contains("more than 10000 schemas"),
        "{refused}"
    );
    assert_eq!(outcomes["honest"]["error"], Value::Null);

    let one = ["discover", "--server", "honest"];
    let done = ends(&[&one[..], &gateway.here()].concat()).await;
    let shown = text(&done.stdout);
    assert!(done.status.success(), "{shown}");
    assert!(shown.starts_with("honest of honest: 1 tool in "), "{shown}");
    assert!(
        shown.contains("the description of 1 of 1 tools is missing: get"),
        "{shown}"
    );
    let one = ["discover", "--server", "other"];
    let done = ends(&[&one[..], &gateway.here()].concat()).await;
    assert!(text(&done.stderr).contains("no such server"));
    assert_eq!(gateway.get("/api/servers/other/discover").await.0, 404);
}
