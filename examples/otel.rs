//! What an OpenTelemetry collector is sent: a trace for each call, as a tree, and metrics.
//! `cargo run --example otel --features otlp`.
//!
//! The collector is in this program too, so that nothing has to be installed; it is asked over
//! HTTP.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use callward::core::BoxFuture;
use callward::router::StrategyName;
use callward::telemetry::Metrics;
use callward::telemetry::export::OtlpConfig;
use callward::telemetry::names::metric::CALLS;
use callward::{
    Delivery, ErrorKind, Server, ServerId, Stack, ToolCall, ToolDefinition, ToolError, ToolOutput,
    ToolServer, ToolSpec, Tools,
};
use callward_testkit::collector::{Collected, Collector};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use serde_json::{Value, json};
use tracing_subscriber::layer::SubscriberExt;

/// A server that lists tools and loses the connection whenever one is called.
struct Broken(Tools);

impl ToolServer for Broken {
    fn id(&self) -> &ServerId {
        self.0.id()
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
        self.0.list_tools()
    }

    fn call(&self, _: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let error = ToolError::new(ErrorKind::ConnectionLost, Delivery::Unknown, "reset");
        Box::pin(std::future::ready(Err(error)))
    }
}

fn orders(id: &str) -> Result<Tools, Box<dyn Error>> {
    let get = ToolSpec::new("get_order").description("Returns one order");
    let answer = |asked: Value| async move { Ok::<_, String>(json!({"id": asked["id"]})) };
    let tools = Tools::new(id)?.tool(get, answer)?;
    let pay = ToolSpec::new("pay_order").description("Pays an order");
    Ok(tools.tool(pay, |_: Value| async { Ok::<_, String>("paid") })?)
}

/// The attributes that are shown: a span has many more.
const SHOWN: [&str; 6] = [
    "callward.effect",
    "callward.cache",
    "callward.server",
    "callward.delivery",
    "error.type",
    "callward.discovery.tools",
];

fn print_tree(spans: &[Collected], parent: Option<&str>, depth: usize) {
    for span in spans.iter().filter(|span| span.parent.as_deref() == parent) {
        let name = format!("{:indent$}{}", "", span.name, indent = 2 * depth);
        print!("{name:24} {:9}", span.kind);
        for key in SHOWN {
            if let Some(value) = span.attributes.get(key) {
                let key = key.rsplit('.').next().unwrap_or(key);
                print!(" {key}={}", value.to_string().trim_matches('"'));
            }
        }
        println!();
        print_tree(spans, Some(&span.id), depth + 1);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let collector = Collector::start().await;
    // from here on it is what a program of yours would do
    let mut config = OtlpConfig::new(collector.endpoint())?;
    let name = ("service.name".to_owned(), "orders-agent".to_owned());
    config.resource.extend([name]);
    let exporter = config.start()?;
    let subscriber = tracing_subscriber::registry().with(exporter.layer());
    tracing::subscriber::set_global_default(subscriber)?;
    let meters = SdkMeterProvider::builder().with_resource(exporter.resource());
    let reader = exporter.metric_reader()?.ok_or("metrics are sent")?;
    let meters = meters.with_reader(reader).build();
    let meter = meters.meter("callward");
    exporter.observe(&meter);

    let set = || "orders".parse();
    let stack = Stack::builder()
        .metrics(Arc::new(Metrics::new(&meter)))
        .strategy(StrategyName::RoundRobin)
        .server(Server::new(Broken(orders("broken")?)).in_set(set()?))
        .server(Server::new(orders("spare")?).in_set(set()?));
    let stack = stack.build().await?;
    stack.observe(&meter);
    for tool in ["orders.get_order", "orders.get_order", "orders.pay_order"] {
        let call = stack.prepare(tool, json!({"id": 7}).to_string())?;
        if let Err(error) = stack.run(call).await {
            println!("{tool}: {}", error.kind);
        }
    }

    let flushing = tokio::task::spawn_blocking(move || meters.shutdown());
    flushing.await??;
    let counts = exporter.shutdown(Duration::from_secs(5)).await;
    print_tree(&collector.spans(), None, 0);
    let (sent, dropped, failed) = (counts.exported, counts.dropped, counts.failed);
    println!("\nspans: {sent} exported, {dropped} dropped, {failed} failed");
    let calls: f64 = collector
        .metric(CALLS.name)
        .iter()
        .map(|one| one.value)
        .sum();
    println!("metrics: {} = {calls}", CALLS.name);
    Ok(())
}
