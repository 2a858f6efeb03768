//! `callward completions` and `callward man`: files made from the definition of the commands.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::error::{AppError, Outcome};
use crate::output;

pub(crate) fn completions(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "callward", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(folder: &Path) -> Outcome {
    let shown = folder.display();
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Args::command(), folder))
        .map_err(AppError::io(format!("cannot write man pages to {shown}")))?;
    output::note(format_args!("wrote man pages to {shown}"));
    Ok(ExitCode::SUCCESS)
}
