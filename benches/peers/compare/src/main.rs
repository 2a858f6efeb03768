//! `compare run` takes every peer through every scenario; `compare report` writes the page.

mod figures;
mod layers;
mod machine;
mod peer;
mod report;
mod run;
mod scenario;
mod session;
mod upstream;
mod version;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "\
compare run --programs DIR --callward FILE --home DIR --sources DIR --out FILE [--quick] [--only NAME]... [--elapsed SECONDS]
compare report --page FILE --folder DIR";

fn main() -> ExitCode {
    match start(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(words: Vec<String>) -> Outcome<()> {
    let mut words = words.into_iter();
    let command = words.next().ok_or(USAGE)?;
    let mut options = Options::default();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--programs" => options.programs = value()?.into(),
            "--callward" => options.callward = value()?.into(),
            "--home" => options.home = value()?.into(),
            "--sources" => options.sources = value()?.into(),
            "--out" => options.out = value()?.into(),
            "--page" => options.page = value()?.into(),
            "--folder" => options.folder = value()?.into(),
            "--only" => options.only.push(value()?),
            "--elapsed" => options.elapsed = value()?.parse()?,
            "--quick" => options.quick = true,
            other => return Err(format!("unknown option {other}\n\n{USAGE}").into()),
        }
    }
    match command.as_str() {
        "run" => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?
            .block_on(run::run(&options)),
        "report" => report::write(&options.page, &options.folder),
        other => Err(format!("unknown command {other}\n\n{USAGE}").into()),
    }
}

#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) programs: PathBuf,
    pub(crate) callward: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) sources: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) page: PathBuf,
    pub(crate) folder: PathBuf,
    /// No one: everybody.
    pub(crate) only: Vec<String>,
    pub(crate) quick: bool,
    /// What building and installing took before this.
    pub(crate) elapsed: u64,
}
