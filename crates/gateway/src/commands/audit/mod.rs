//! `callward audit`: audit logs, read back.

mod show;
mod verify;

use crate::args::{Audit, AuditCommand};
use crate::error::{AppError, Outcome};
use crate::output::Screen;

pub(crate) async fn run(args: Audit, screen: &Screen) -> Outcome {
    let screen = *screen;
    // files are read as fast as they come, and nothing else waits for that
    let read = tokio::task::spawn_blocking(move || match args.command {
        AuditCommand::Verify(args) => verify::run(&args, &screen),
        AuditCommand::Show(args) => show::run(&args, &screen),
    });
    read.await
        .map_err(|error| AppError::io("the log was not read")(std::io::Error::other(error)))?
}
