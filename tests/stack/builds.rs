//! Settings that make no sense: the build fails, and names what is wrong.

use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::cache::ToolScopes;
use callward::core::Weight;
use callward::loopguard::LoopGuardConfig;
use callward::router::RouterConfig;
use callward::{
    Annotations, ArgumentRule, BuildError, Condition, Instances, LimitsConfig, PingConfig, Server,
    Stack, StackBuilder, ToolSpec, Tools, Trust, When,
};
use serde_json::Value;

/// A server with one tool, `get`.
fn server(id: &str) -> Server {
    let answer = |_: Value| async { Ok::<_, String>("done") };
    let tools = Tools::new(id).unwrap().tool(ToolSpec::new("get"), answer);
    Server::new(tools.unwrap())
}

fn in_set(id: &str) -> Server {
    server(id).in_set("set".parse().unwrap())
}

fn reads(server: Server, scope: &str) -> Server {
    let scopes = ToolScopes::reading([scope]).unwrap();
    server.tool_scopes("get".parse().unwrap(), scopes)
}

fn rule(server: Server, value: &str) -> Server {
    let when = When::argument("action", Condition::equals(value)).unwrap();
    let hints = Annotations::default().with_read_only(true);
    let rule = ArgumentRule::new(when, hints).unwrap();
    server.refine_tool("get".parse().unwrap(), rule)
}

fn with(servers: impl IntoIterator<Item = Server>) -> StackBuilder {
    let builder = Stack::builder();
    servers.into_iter().fold(builder, StackBuilder::server)
}

fn limits(set: impl FnOnce(&mut LimitsConfig)) -> StackBuilder {
    let mut limits = LimitsConfig::default();
    set(&mut limits);
    Stack::builder().limits(limits)
}

#[tokio::test(start_paused = true)]
async fn a_setting_without_sense_fails_the_build_and_is_named() {
    let mut breaker = BreakerConfig::default();
    breaker.probes = 0;
    let mut ping = PingConfig::default();
    ping.interval = Duration::ZERO;
    let mut guard = LoopGuardConfig::default();
    guard.failures = 0;
    let mut router = RouterConfig::default();
    router.cost_budget = Some(-1.0);
    let no_time = |limits: &mut LimitsConfig| limits.attempt_timeout = Some(Duration::ZERO);
    let no_rate = |limits: &mut LimitsConfig| limits.rate.in_all = Some(-1.0);
    let apart = |id| in_set(id).instances(Instances::Principal);
    let alone = |set: fn(Server) -> Server| with([set(server("a"))]);
    let rules = [rule(in_set("a"), "x"), rule(in_set("b"), "y")];
    let [first, last] = [("a", "x"), ("c", "y")].map(|(id, of)| reads(in_set(id), of));
    let breakers = Stack::builder().server_breaker(breaker);
    let free = alone(|one| one.cost_factor(f64::NAN));
    let heavy = alone(|one| one.weight(101));
    for (builder, named) in [
        (breakers, "servers: probes is 0"),
        (Stack::builder().ping(ping), "interval"),
        (Stack::builder().loop_guard(guard), "failures"),
        (Stack::builder().router(router), "router: cost_budget"),
        (limits(no_time), "attempt_timeout"),
        (limits(no_rate), "in_all"),
        (alone(|one| one.calls_per_minute(0.0)), "server `a`: in_all"),
        (free, "server `a`: cost_factor"),
        (heavy, "server `a`: 101 is not a weight"),
        (with(["a", "a"].map(server)), "two servers are called `a`"),
        (with([apart("a"), in_set("b")]), "instance"),
        (with(rules), "arguments"),
        (with([first, in_set("b"), last]), "reads and writes"),
    ] {
        let error = builder.build().await.unwrap_err().to_string();
        assert!(error.contains(named), "{named}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_sense_is_not_added_and_changes_nothing() {
    let stack = with([in_set("a")]).build().await.unwrap();
    let (generation, breakers) = (stack.catalogue().generation(), stack.breakers().len());
    let untrusted = in_set("b").trust(Trust::Untrusted);
    let scoped = reads(in_set("b"), "x");
    for (server, named) in [
        (in_set("a"), "two servers are called `a`"),
        (untrusted, "how far they are trusted"),
        (in_set("b").prefix(None), "the prefix"),
        (server("c").weight(101), "101 is not a weight"),
        (server("c").calls_per_minute(-1.0), "server `c`"),
        (scoped, "which state a tool reads and writes cannot change"),
    ] {
        let error = stack.add_server(server).await.unwrap_err().to_string();
        assert!(error.contains(named), "{named}: {error}");
    }
    // the same error as of a build
    let both = || in_set("b").trust(Trust::Trusted);
    let error = stack.add_server(both()).await.unwrap_err();
    let built = with([in_set("a"), both()]).build().await;
    assert_eq!(error, built.unwrap_err());
    assert!(matches!(error, BuildError::Conflict { .. }));
    let unknown = "z".parse().unwrap();
    assert!(stack.remove_server(&unknown).is_err());
    assert!(stack.reweigh(&unknown, Weight::PRIMARY).is_err());
    assert!(stack.undrain(&unknown).is_err());
    let error = stack.drain(&unknown).unwrap_err().to_string();
    assert_eq!(error, "no replica set has a server \"z\"");
    assert_eq!(stack.servers().len(), 1);
    assert_eq!(stack.catalogue().generation(), generation);
    assert_eq!(stack.breakers().len(), breakers);
    // tools that were not called yet may get any scopes
    stack.add_server(reads(server("c"), "x")).await.unwrap();
}
