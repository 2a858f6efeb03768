//! What the cache did, and emptying it.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use callward::{Principal, Stack};

use super::body::{obey, refuse};
use crate::http::{Operator, json};
use crate::similar;
use crate::view::{CacheView, Purge, Purged};

/// Tells what the cache did, and for which tools.
pub(super) async fn stats(State(operator): State<Arc<Operator>>) -> Response {
    match CacheView::of(&operator.stack) {
        Ok(view) => json(StatusCode::OK, &view),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// Forgets what the body names.
pub(super) async fn purge(State(operator): State<Arc<Operator>>, body: Bytes) -> Response {
    let expected = format!("an object with exactly one of {}", Purge::KEYS);
    obey(&body, &expected, |what: Purge| {
        forget(&operator.stack, &what)
    })
}

/// Empties the cache; a name that nobody has empties nothing.
fn forget(stack: &Stack, what: &Purge) -> Result<Purged, String> {
    let cache = stack.cache();
    let mut set = None;
    match what {
        Purge::All(true) => cache.purge_all(),
        Purge::All(false) => return Err("`all` empties the cache only if it is `true`".into()),
        Purge::Principal(principal) => cache.purge_principal(&Principal::new(principal.as_str())),
        Purge::Server(id) => {
            let servers = stack.servers();
            let known = || servers.iter().map(|server| server.id.as_str());
            let server = servers.iter().find(|server| server.id.as_str() == id);
            let server = server.ok_or_else(|| {
                let hint = similar::hint(id, known(), "servers");
                format!("no server {id:?}: {hint}")
            })?;
            cache.purge_set(&server.set);
            set = Some(server.set.to_string());
        }
        Purge::Tag(tag) => cache.purge_tag(tag),
        Purge::Tool(name) => {
            let call = stack.prepare(name, "").map_err(|error| {
                let catalogue = stack.catalogue();
                let known = catalogue.entries().iter().map(|entry| entry.client_name());
                match similar::near(name, known) {
                    Some(hint) => format!("no tool {name:?}: {hint}"),
                    None => error.to_string(),
                }
            })?;
            let tool = call.tool();
            cache.purge_tool(tool.set(), tool.name());
            set = Some(tool.set().to_string());
        }
    }
    Ok(Purged {
        purged: what.clone(),
        set,
    })
}
