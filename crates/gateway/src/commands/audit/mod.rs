//! `callward audit`: verifies and shows audit logs.

mod show;
mod verify;

use crate::args::{Audit, AuditCommand};
use crate::error::{AppError, Outcome};

pub(crate) async fn run(args: Audit) -> Outcome {
    // files are read as fast as they come, and nothing else waits for that
    let read = tokio::task::spawn_blocking(move || match args.command {
        AuditCommand::Verify(args) => verify::run(&args),
        AuditCommand::Show(args) => show::run(&args),
    });
    read.await
        .map_err(|error| AppError::io("the log was not read")(std::io::Error::other(error)))?
}
