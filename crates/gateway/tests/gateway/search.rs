//! Lists of tools by a query, and the calls of each.

use serde_json::{Value, json};

use crate::support::{Gateway, ends, result, text};

#[tokio::test]
async fn tools_are_found_and_their_calls_are_shown() {
    let gateway = Gateway::sample().await;
    for _ in 0..2 {
        result(
            &gateway
                .call("orders__get_order", json!({"order_id": 1}))
                .await,
        );
    }
    let path = "/api/tools?text=get+order&readOnly=true&sort=calls&desc=true&limit=1";
    let request = gateway.http.get(gateway.at(path));
    let answer = request.bearer_auth(&gateway.token).send().await.unwrap();
    let total: usize = answer.headers()["x-total-count"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(total > 1, "{total}");
    let timing = answer.headers()["server-timing"].to_str().unwrap();
    assert!(timing.starts_with("search;dur="), "{timing}");
    let page: Vec<Value> = answer.json().await.unwrap();
    assert_eq!(
        (page.len(), &page[0]["name"]),
        (1, &json!("orders__get_order"))
    );
    for (query, part) in [
        ("sort=size", "expected one of relevance"),
        ("colour=red", "there is no hint `colour`"),
    ] {
        let (status, body) = gateway.get(&format!("/api/tools?{query}")).await;
        assert_eq!(status, 400);
        assert!(body.contains(part), "{body}");
    }

    let shown = async |args: &[&str]| {
        let done = ends(&[args, &gateway.here()].concat()).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        (text(&done.stdout).to_owned(), text(&done.stderr).to_owned())
    };
    let (found, note) = shown(&["tools", "get", "order", "--limit", "1", "--safety", "safe"]).await;
    assert!(
        found.contains("orders__get_order") && found.lines().count() == 2,
        "{found}"
    );
    assert!(note.contains("1 of "), "{note}");
    let (found, note) = shown(&["tools", "--server", "nope"]).await;
    assert_eq!((&*found, &*note), ("", "no tool matches\n"));
    let (stats, _) = shown(&["tools", "--stats"]).await;
    let row = stats
        .lines()
        .find(|line| line.starts_with("orders__get_order"));
    let cells: Vec<_> = row.unwrap().split_whitespace().collect();
    assert_eq!(cells[1..4], ["2", "0", "100.0"], "{stats}");
    assert!(stats.contains("by category"), "{stats}");
    let (stats, _) = shown(&["tools", "--stats", "--json"]).await;
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["tools"][0]["calls"], 2, "{stats}");
}
