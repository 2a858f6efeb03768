//! How the breakers are, and holding them open or closed.

use serde_json::{Value, json};

use crate::support::{Gateway, ends, http, text, within};

async fn breakers(gateway: &Gateway) -> Vec<Value> {
    let (status, body) = gateway.get("/api/breakers").await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn a_server_that_is_held_open_gets_no_call_until_it_is_released() {
    let gateway = Gateway::sample().await;
    let run = async |args: &[&str]| {
        let done = ends(&[&["breakers"], args, &["--url", &gateway.url]].concat()).await;
        (
            done.status.success(),
            text(&done.stdout).to_owned(),
            text(&done.stderr).to_owned(),
        )
    };
    let servers: Vec<String> = breakers(&gateway)
        .await
        .iter()
        .filter(|breaker| breaker["scope"] == "server")
        .map(|breaker| breaker["server"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(servers.len(), 2, "{servers:?}");
    for server in &servers {
        let (ok, out, err) = run(&["open", server]).await;
        assert!(ok && out.contains("forced open"), "{out}{err}");
    }
    let refused = gateway
        .call("orders__add_note", json!({"order_id": 1, "text": "x"}))
        .await;
    assert!(
        refused.to_string().contains("holds its breaker open"),
        "{refused}"
    );
    let (ok, out, _) = run(&[]).await;
    assert!(ok && out.matches("forced open").count() == 2, "{out}");
    for server in &servers {
        let (ok, out, err) = run(&["release", server, "--json"]).await;
        assert!(ok, "{err}");
        let said: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(said["breaker"]["state"], "closed", "{said}");
    }
    let passed = gateway
        .call("orders__add_note", json!({"order_id": 1, "text": "x"}))
        .await;
    assert!(passed["result"].is_object(), "{passed}");
}

#[tokio::test]
async fn one_tool_is_held_by_either_of_its_names_and_what_is_not_there_is_told() {
    let gateway = Gateway::sample().await;
    let server = breakers(&gateway).await[0]["server"]
        .as_str()
        .unwrap()
        .to_owned();
    let post = async |body: Value| {
        let request = http().post(gateway.at("/api/breakers")).json(&body);
        let answer = within("a breaker", request.send()).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for tool in ["add_note", "orders__add_note"] {
        let (status, said) = post(json!({"action": "open", "server": server, "tool": tool})).await;
        assert_eq!(status, 200, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["breaker"]["tool"], "add_note");
        assert_eq!(said["breaker"]["state"], "forced_open");
    }
    for (body, status, said) in [
        (json!({"action": "open", "server": "x"}), 404, "no server"),
        (
            json!({"action": "open", "server": server, "tool": "add_not"}),
            404,
            "did you mean `add_note`",
        ),
        (
            json!({"action": "open", "server": server, "tool": "add_note", "discovery": true}),
            404,
            "found both",
        ),
        (
            json!({"action": "shut", "server": server}),
            400,
            "open, close or release",
        ),
    ] {
        let (found, text) = post(body).await;
        assert_eq!(found, status, "{text}");
        assert!(text.contains(said), "{text}");
    }
}
