//! `callward audit`: verifies and shows audit logs.

mod show;
mod verify;

use crate::args::{Audit, AuditCommand};
use crate::error::Outcome;

pub(crate) async fn run(args: Audit) -> Outcome {
    super::on_a_thread(move || match args.command {
        AuditCommand::Verify(args) => verify::run(&args),
        AuditCommand::Show(args) => show::run(&args),
    })
    .await
}
