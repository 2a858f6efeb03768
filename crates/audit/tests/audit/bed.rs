//! An audited service with its own log.

use std::path::PathBuf;
use std::sync::Arc;

use callward_audit::{Audit, AuditConfig, AuditLayer, AuditLog, Report, verify};
use callward_core::{SecurityLevel, Tool, ToolOutput};
use callward_testkit::{MockService, tool};
use serde_json::{Value, json};
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

    pub(crate) fn config(&self) -> AuditConfig {
        AuditConfig::new(&self.path)
    }

    pub(crate) fn open(&self) -> AuditLog {
        AuditLog::open(&self.config()).unwrap()
    }

    pub(crate) fn report(&self) -> Report {
        verify(std::slice::from_ref(&self.path), None)
            .unwrap()
            .remove(0)
    }

    /// Returns all records of a kind in the files of the main log, in their order.
    pub(crate) fn records(&self, kind: &str) -> Vec<Value> {
        self.files()
            .iter()
            .flat_map(|path| records_in(path))
            .filter(|record| record["kind"] == kind)
            .collect()
    }

    pub(crate) fn open_world(&self) -> Vec<Value> {
        let path = AuditConfig::open_world_beside(&self.path);
        let mut records = records_in(&path);
        records.retain(|record| record["kind"] == "call");
        records
    }

    /// Returns the files of the main log, in their order.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                let number = name
                    .strip_prefix("audit.")
                    .and_then(|n| n.strip_suffix(".jsonl"));
                number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
            })
            .collect();
        files.sort();
        files.push(self.path.clone());
        files
    }
}

pub(crate) fn records_in(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read(path).unwrap();
    text.split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

pub(crate) fn audited(log: &AuditLog, server: MockService) -> Audit<MockService> {
    AuditLayer::new(log.clone()).layer(server)
}

pub(crate) fn answering() -> MockService {
    MockService::new(|_, _| async { Ok(ToolOutput::json(&json!({"done": true})).unwrap()) })
}

pub(crate) fn restricted(name: &str) -> Arc<Tool> {
    tool(name)
        .hint(|hints| hints.security_level = Some(SecurityLevel::Restricted))
        .build()
}

pub(crate) fn internal(name: &str) -> Arc<Tool> {
    tool(name)
        .hint(|hints| hints.security_level = Some(SecurityLevel::Internal))
        .build()
}

pub(crate) fn public(name: &str) -> Arc<Tool> {
    tool(name)
        .hint(|hints| hints.security_level = Some(SecurityLevel::Public))
        .build()
}

pub(crate) fn reaching_out(name: &str) -> Arc<Tool> {
    tool(name)
        .hint(|hints| {
            hints.audit_required = Some(true);
            hints.open_world_hint = Some(true);
        })
        .build()
}
