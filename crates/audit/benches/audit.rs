//! What a record costs the call that leaves it: no log, a log and a tool that leaves none, a partial
//! record, a full one.
//!
//! The thread that writes runs beside, on whatever core it gets; `fsync` is off, so that the disk is
//! not what is measured.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

use std::hint::black_box;

use callward_audit::{AuditConfig, AuditLayer, AuditLog, Fsync};
use callward_core::{SecurityLevel, ToolCall, ToolOutput};
use callward_testkit::{AtOnce, call, tool};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use tower::{Layer, Service};

fn calls() -> [(&'static str, ToolCall); 3] {
    let of = |name, level| {
        let tool = tool(name).hint(|hints| hints.security_level = Some(level));
        call(
            &tool.build(),
            json!({"account": "x".repeat(180), "cents": 7}),
        )
    };
    [
        ("none", of("see", SecurityLevel::Public)),
        ("partial", of("look", SecurityLevel::Internal)),
        ("full", of("pay", SecurityLevel::Restricted)),
    ]
}

fn cost(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = AuditConfig::new(folder.path().join("audit.jsonl"))
        .with_fsync(Fsync::Never)
        .with_keep_files(1);
    let log = AuditLog::open(&config).unwrap();
    let mut group = criterion.benchmark_group("audit");
    for (layers, layer) in [
        ("no log", AuditLayer::off()),
        ("log", AuditLayer::new(log.clone())),
    ] {
        for (record, call) in calls() {
            let mut service = layer.layer(AtOnce::new(ToolOutput::text("y".repeat(200))));
            group.bench_function(format!("{layers}, record {record}"), |bencher| {
                bencher.iter(|| {
                    runtime.block_on(async {
                        // never waits but for room
                        black_box(service.call(call.clone()).await.unwrap());
                    });
                });
            });
        }
    }
    group.finish();
    runtime.block_on(log.close());
}

criterion_group!(benches, cost);
criterion_main!(benches);
