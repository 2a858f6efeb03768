//! `callward completions` and `callward man`: files made from the definition of the commands.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Args, Completions, Man};
use crate::error::{AppError, Outcome};
use crate::output;

pub(crate) fn completions(args: &Completions) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "callward", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &Man) -> Outcome {
    let folder = args.folder.display();
    std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(Args::command(), &args.folder))
        .map_err(AppError::io(format!("cannot write man pages to {folder}")))?;
    output::note(format_args!("wrote man pages to {folder}"));
    Ok(ExitCode::SUCCESS)
}
