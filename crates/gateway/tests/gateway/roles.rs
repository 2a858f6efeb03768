//! Who may use the admin listener: each route needs a role, and commands find their token.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use reqwest::RequestBuilder;
use reqwest::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN, WWW_AUTHENTICATE};
use serde_json::Value;

use crate::support::{Gateway, callward, ends, http, registered, sample, serve, text, within};

/// Each row: the role that it needs, method, path, and body.
const ROUTES: &str = r#"
anyone GET /metrics
anyone GET /readyz
viewer GET /api/approvals
viewer GET /api/breakers
operator POST /api/breakers {"action":"release","server":"shop"}
viewer GET /api/cache
operator POST /api/cache/purge {"all":true}
viewer GET /api/limits
viewer GET /api/missing
viewer GET /api/routes/events
viewer GET /api/servers
operator POST /api/servers/shop/drain {}
operator POST /api/servers/shop/undrain {}
operator POST /api/servers/shop/weight {"weight":1}
viewer GET /api/tools
viewer GET /api/tools/shop__get_order
operator POST /api/tools/shop__get_order/call {"order_id":1}
viewer POST /api/tools/shop__get_order/explain {"order_id":1}
"#;

/// Roles, the greater last. A sender without a valid credential has none.
const ROLES: [&str; 3] = ["anyone", "viewer", "operator"];

/// A gateway with a key for each role, and these keys.
async fn with_keys() -> (Gateway, [String; 3]) {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let mut keys = ROLES.map(str::to_owned);
    for key in &mut keys {
        let dir = state.path().to_str().unwrap();
        let done = ends(&["keys", "create", key, "--role", key, "--state-dir", dir]).await;
        text(&done.stdout).trim().clone_into(key);
    }
    let (mut command, file) = serve(&format!(
        "[approvals]\n[auth]\nkeys = true\n{}",
        sample("shop")
    ));
    command.env("CALLWARD_LOG", "debug");
    (
        Gateway::started(command, Some(file), Some(state)).await,
        keys,
    )
}

fn request(gateway: &Gateway, row: &str) -> RequestBuilder {
    let parts: Vec<_> = row.splitn(4, ' ').collect();
    let url = gateway.at(parts[2]);
    match parts.get(3) {
        Some(body) => http().post(url).body((*body).to_owned()),
        None => http().get(url),
    }
    .header("content-type", "application/json")
}

#[tokio::test]
async fn each_route_of_the_admin_listener_asks_for_its_role() {
    let (gateway, keys) = with_keys().await;
    let own = &gateway.token.clone();
    let wrong = format!("cwk_{}", "a".repeat(49));
    let [none, viewer, operator] = &keys;
    for row in ROUTES.trim().lines() {
        let needed = ROLES.iter().position(|role| row.starts_with(role)).unwrap();
        for (name, value, role) in [
            (AUTHORIZATION, String::new(), None),
            (AUTHORIZATION, format!("Bearer {wrong}"), None),
            (AUTHORIZATION, format!("Basic {own}"), None),
            (
                COOKIE,
                format!("token={own}; Authorization=Bearer {own}"),
                None,
            ),
            (AUTHORIZATION, format!("Bearer {none}"), Some(0)),
            (AUTHORIZATION, format!("Bearer {viewer}"), Some(1)),
            (AUTHORIZATION, format!("Bearer {operator}"), Some(2)),
            (AUTHORIZATION, format!("Bearer {own}"), Some(2)),
        ] {
            let expected = match role {
                _ if needed == 0 => 200,
                None => 401,
                Some(role) => {
                    if role >= needed {
                        200
                    } else {
                        403
                    }
                }
            };
            let sent = request(&gateway, row).header(&name, &value).send();
            let answer = within(row, sent).await.unwrap();
            assert_eq!(answer.status(), expected, "{row}: {name} {value}");
            if expected != 200 {
                let challenge = answer.headers()[WWW_AUTHENTICATE].to_str().unwrap();
                assert!(challenge.starts_with("Bearer"), "{challenge}");
                let error: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
                assert_eq!(error["kind"], "unauthorized", "{row}: {error}");
            } else if row.ends_with("/readyz") {
                let ready = answer.text().await.unwrap();
                assert!(ready.contains("\"servers\""), "{ready}");
            }
        }
        for (name, value) in [(ORIGIN, "http://localhost:1"), (HOST, "evil.example")] {
            let sent = request(&gateway, row).bearer_auth(own).header(&name, value);
            let answer = within(row, sent.send()).await.unwrap();
            assert_eq!(answer.status(), 403, "{row}: {name}");
        }
    }
    // the token of the run is for operators alone
    let call = gateway.mcp_request("shop__get_order", &Value::Null, &Value::Null);
    let answer = within("an answer", call.bearer_auth(own).send()).await;
    assert_eq!(answer.unwrap().status(), 401);
    let said = gateway.stopped().await;
    let drains = said
        .lines()
        .filter(|line| line.contains("/api/servers/shop/drain"));
    let drains: Vec<_> = drains
        .filter(|line| line.contains("an operator's request"))
        .collect();
    assert_eq!(drains.len(), 2, "{said}");
    assert!(
        drains[0].contains("principal=key#") && drains[0].contains("operator"),
        "{drains:?}"
    );
    for key in keys.iter().chain([own]) {
        assert!(!said.contains(key), "{said}");
    }
}

#[tokio::test]
async fn commands_find_their_token_or_say_how_to_get_one() {
    let (gateway, [_, viewer, _]) = with_keys().await;
    let own = gateway.token.clone();
    let (url, here) = (["--url", &gateway.admin], gateway.here());
    let both = [here, url].concat();
    let wrong = format!("cwk_{}", "a".repeat(49));
    for (place, token, drains, code, said) in [
        (&here[..], None, true, 0, ""),
        (&both, None, true, 0, ""),
        (&both, Some(&*wrong), false, 1, "run this as"),
        (&both, Some(&viewer), true, 1, "with the role `operator`"),
        (&url, None, false, 1, "CALLWARD_ADMIN_TOKEN"),
        (
            &url,
            Some(&wrong),
            false,
            1,
            "run this as the user who started",
        ),
        (&url, Some("\u{1}"), false, 2, "expected visible ASCII"),
        (&url, Some(&viewer), false, 0, ""),
        (&url, Some(&viewer), true, 1, "with the role `operator`"),
        (&url, Some(&own), true, 0, ""),
    ] {
        let order = if drains {
            &["servers", "undrain", "shop"][..]
        } else {
            &["servers"]
        };
        let mut command = callward(&[order, place].concat());
        if let Some(token) = token {
            command.env("CALLWARD_ADMIN_TOKEN", token);
        }
        let done = within("the command", command.output()).await.unwrap();
        let found = text(&done.stderr);
        assert_eq!(
            done.status.code(),
            Some(code),
            "{place:?} {token:?}: {found}"
        );
        assert!(found.contains(said), "{found}");
        assert!(
            ![&own, &viewer, &wrong]
                .iter()
                .any(|key| found.contains(&***key)),
            "{found}"
        );
    }
    // a file that others may read is refused, and its token is not shown
    let (file, _) = registered(gateway.state.path()).remove(0);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o604)).unwrap();
    let refused = ends(&[&["servers"], &gateway.here()[..]].concat()).await;
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    let advice = format!("run `chmod 600 {}`", file.display());
    assert!(said.contains(&advice) && !said.contains(&own), "{said}");
}
