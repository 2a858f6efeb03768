//! Which servers a plan admits, in NeuroLink's order.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use tollgate_core::{Annotations, CallPlan, Profile, Resolved, RouteRule, Source};

use super::{Answer, hints};

#[derive(Deserialize)]
struct Setup {
    config: Config,
    servers: Vec<Server>,
    #[serde(default)]
    health: BTreeMap<String, bool>,
    tool: Tool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    server_weights: Vec<Weight>,
    #[serde(default)]
    category_mapping: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Weight {
    server_id: String,
    weight: f64,
}

#[derive(Deserialize)]
struct Server {
    id: String,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(default)]
    annotations: Value,
}

/// The servers that may get the call: what the plan's route rule leaves of the healthy ones.
pub(super) fn candidates(input: &Value) -> Result<Answer, String> {
    let setup = Setup::deserialize(input).map_err(|error| error.to_string())?;
    let mut stated = hints::read(&setup.tool.annotations)?;
    let route = route(&stated);
    let healthy: Vec<&str> = setup
        .servers
        .iter()
        .map(|server| server.id.as_str())
        .filter(|id| setup.health.get(*id) != Some(&false))
        .collect();
    if let Some(least) = route.min_weight {
        let primaries: Vec<&str> = setup
            .config
            .server_weights
            .iter()
            .filter(|entry| entry.weight >= f64::from(least))
            .map(|entry| entry.server_id.as_str())
            .filter(|id| healthy.contains(id))
            .collect();
        if primaries.is_empty() {
            // NeuroLink goes on as if the call destroyed nothing.
            stated.destructive_hint = None;
            let rest = preferred(&setup, &healthy, &self::route(&stated));
            return Ok(Answer::Refused(rest));
        }
        return Ok(Answer::Is(json!(primaries)));
    }
    Ok(Answer::Is(preferred(&setup, &healthy, &route)))
}

fn route(stated: &Annotations) -> RouteRule {
    let resolved = Resolved::from_single(stated.clone(), Source::Declared);
    CallPlan::derive(&resolved, &Profile::neurolink()).route
}

/// The healthy servers of the categories the plan prefers, or all where there is none.
fn preferred(setup: &Setup, healthy: &[&str], route: &RouteRule) -> Value {
    let of_category = |id: &str| {
        route.prefer.iter().any(|category| {
            let members = setup.config.category_mapping.get(*category);
            members.is_some_and(|members| members.iter().any(|member| member == id))
        })
    };
    let preferred: Vec<&str> = healthy
        .iter()
        .copied()
        .filter(|id| of_category(id))
        .collect();
    if preferred.is_empty() {
        json!(healthy)
    } else {
        json!(preferred)
    }
}
