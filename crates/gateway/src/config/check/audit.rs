//! What is written down about calls.

use std::path::PathBuf;

use callward::audit::AuditConfig;
use callward::core::redact::Redactor;

use super::super::AuditFile;
use super::super::audit::Audit;
use super::Faults;

/// The longest text that a record may hold, in bytes.
const MOST_TEXT: u64 = 16 << 20;

impl Faults<'_, '_> {
    /// Returns none where no file is named; what is written is checked all the same.
    pub(super) fn audit(&mut self, written: &Audit) -> Option<AuditFile> {
        let section = ["audit"];
        self.expect(
            written.max_text.0 <= MOST_TEXT,
            &["audit", "max_text"],
            "expected at most 16MiB",
        );
        for (number, name) in (1_usize..).zip(&written.redact) {
            let number = number.to_string();
            self.expect(
                name.chars().any(char::is_alphanumeric),
                &["audit", "redact", &number],
                "expected a name with a letter or a digit",
            );
        }
        let max_text = usize::try_from(written.max_text.0).unwrap_or(usize::MAX);
        let ours = Redactor::DEFAULT_NAMES;
        let names = ours
            .into_iter()
            .chain(written.redact.iter().map(String::as_str));
        let redactor = Redactor::new(names, max_text);
        let path = written.path.clone();
        let plain =
            || AuditConfig::new(path.clone().unwrap_or_else(|| PathBuf::from("audit.jsonl")));
        let open_world = written.open_world_path.clone();
        let open_world = open_world.unwrap_or_else(|| plain().open_world_path);
        // one setting at a time, so that the first fault hides no other
        for alone in [
            plain(),
            plain().with_open_world_path(&open_world),
            plain().with_max_bytes(written.max_bytes.0),
            plain().with_max_age(written.max_age),
            plain().with_keep_files(written.keep_files),
            plain().with_fsync(written.fsync),
            plain().with_queue(written.queue),
        ] {
            self.layer(&section, alone.validate(), &[]);
        }
        let config = plain()
            .with_open_world_path(open_world)
            .with_max_bytes(written.max_bytes.0)
            .with_max_age(written.max_age)
            .with_keep_files(written.keep_files)
            .with_fsync(written.fsync)
            .with_on_full(written.on_full.into())
            .with_on_failure(written.on_failure.into())
            .with_queue(written.queue)
            .with_arguments(written.arguments.into())
            .with_results(written.results.into())
            .with_redactor(redactor);
        written.path.as_ref().map(|_| AuditFile {
            config,
            key_file: written.key_file.clone(),
        })
    }
}
