//! An audited service with its own log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use callward_audit::{Audit, AuditConfig, AuditKey, AuditLayer, AuditLog, Report, verify};
use callward_core::{SecurityLevel, Tool, ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::{Value, json};
use tower::ServiceExt;
use tower_layer::Layer;

/// A folder with a log.
pub(crate) struct Bed {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        Self { folder, path }
    }

    /// Creates a folder with these files.
    pub(crate) fn with(files: &[(String, Vec<u8>)]) -> Self {
        let bed = Self::new();
        for (name, bytes) in files {
            std::fs::write(bed.folder.path().join(name), bytes).unwrap();
        }
        bed
    }

    pub(crate) fn config(&self) -> AuditConfig {
        AuditConfig::new(&self.path)
    }

    /// Returns the default settings with a change.
    pub(crate) fn config_with(&self, change: impl FnOnce(&mut AuditConfig)) -> AuditConfig {
        let mut config = self.config();
        change(&mut config);
        config
    }

    pub(crate) fn open(&self) -> AuditLog {
        AuditLog::open(&self.config()).unwrap()
    }

    /// Opens the log, makes calls that are answered, and closes it.
    pub(crate) async fn record(
        &self,
        config: AuditConfig,
        calls: impl IntoIterator<Item = ToolCall>,
    ) {
        let log = AuditLog::open(&config).unwrap();
        for call in calls {
            audited(&log, answering()).oneshot(call).await.unwrap();
        }
        log.close().await;
    }

    pub(crate) fn verified(&self, key: Option<&AuditKey>) -> Report {
        let paths = std::slice::from_ref(&self.path);
        verify(paths, key).unwrap().remove(0)
    }

    /// Returns the report of a log without a fault.
    pub(crate) fn whole(&self) -> Report {
        let report = self.verified(None);
        assert!(report.is_whole(), "{report:?}");
        report
    }

    /// Returns all records of a kind in the files of the main log, in their order.
    pub(crate) fn records(&self, kind: &str) -> Vec<Value> {
        let files = self.files();
        let records = files.iter().flat_map(|path| records_in(path));
        records.filter(|record| record["kind"] == kind).collect()
    }

    /// Returns the only record of a call.
    pub(crate) fn one(&self) -> Value {
        let mut records = self.records("call");
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }

    /// Returns the files of the main log, in their order.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        callward_audit::files(&self.path).unwrap()
    }
}

fn records_in(path: &Path) -> Vec<Value> {
    let text = std::fs::read(path).unwrap();
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

pub(crate) fn audited(log: &AuditLog, server: MockService) -> Audit<MockService> {
    AuditLayer::new(log.clone()).layer(server)
}

pub(crate) fn answering() -> MockService {
    MockService::new(|_, _| async { Ok(ToolOutput::json(&json!({"done": true})).unwrap()) })
}

pub(crate) fn leveled(name: &str, level: SecurityLevel) -> Arc<Tool> {
    let tool = tool(name).hint(|hints| hints.security_level = Some(level));
    tool.build()
}

/// A call of a restricted tool, which has a full record.
pub(crate) fn pay(arguments: Value) -> ToolCall {
    call(&leveled("pay", SecurityLevel::Restricted), arguments)
}
