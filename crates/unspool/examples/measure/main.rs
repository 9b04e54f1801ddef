//! Runs a command repeatedly and reports wall time, CPU time and peak memory.
//!
//! ```text
//! measure --label "cold sync" --runs 5 --before "rm -rf X" -- unspool --data X sync
//! measure --label "search" --each words.txt -- unspool search {} --json
//! measure --label "list, first output" --first-output -- unspool list
//! ```
//!
//! To compare two programs, run them alternately, append the runs to one file and print its table:
//!
//! ```text
//! measure --label ours --save runs.tsv -- …
//! measure --label theirs --save runs.tsv -- …
//! measure --table runs.tsv --ratio theirs ours
//! ```

mod sample;
mod watch;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use sample::{Sample, Samples};

/// Measures a command: wall time, CPU time, memory
#[derive(Parser)]
struct Arguments {
    /// The label of the row
    #[arg(long)]
    label: Option<String>,
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// A shell command to run before each run; not measured
    #[arg(long, value_name = "COMMAND")]
    before: Option<String>,
    /// Runs the command once per line of a file, with the line in place of {}
    #[arg(long, value_name = "FILE")]
    each: Option<PathBuf>,
    /// Stops the clock at the first byte of output
    #[arg(long)]
    first_output: bool,
    /// Adds the runs to a file instead of printing a row
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Prints the table of a file written by --save
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// With --table: the ratio of the first label's median time to the second's
    #[arg(long, num_args = 2, value_names = ["LABEL", "LABEL"])]
    ratio: Option<Vec<String>>,
    /// The command and its arguments
    #[arg(last = true)]
    command: Vec<String>,
}

fn main() -> ExitCode {
    match work(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("measure: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn work(arguments: &Arguments) -> Result<()> {
    if let Some(file) = &arguments.table {
        return print_table(file, arguments.ratio.as_deref());
    }
    let Some(label) = &arguments.label else { bail!("name the row with --label") };
    ensure!(!label.contains('\t'), "a label has no tabs");
    ensure!(!arguments.command.is_empty(), "say what to run, behind --");
    let mut samples = Vec::new();
    for line in lines_of(arguments.each.as_deref())? {
        let command: Vec<String> =
            arguments.command.iter().map(|word| word.replace("{}", &line)).collect();
        for _ in 0..arguments.runs {
            prepare(arguments.before.as_deref())?;
            samples.push(watch::run(&command, arguments.first_output)?);
        }
    }
    match &arguments.save {
        Some(file) => save(file, label, &samples),
        None => {
            let mut all = Samples::default();
            samples.iter().for_each(|sample| all.add(label, *sample));
            println!("{}", sample::HEAD);
            all.rows().for_each(|row| println!("{row}"));
            Ok(())
        }
    }
}

/// The replacements for {}; a single empty one without a file.
fn lines_of(file: Option<&Path>) -> Result<Vec<String>> {
    let Some(file) = file else { return Ok(vec![String::new()]) };
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines: Vec<String> =
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    ensure!(!lines.is_empty(), "{} has no lines to run the command with", file.display());
    Ok(lines)
}

fn prepare(before: Option<&str>) -> Result<()> {
    let Some(before) = before else { return Ok(()) };
    let status = Command::new("sh").arg("-c").arg(before).status().context("cannot run sh")?;
    ensure!(status.success(), "the command before the run failed ({status}): {before}");
    Ok(())
}

fn save(file: &Path, label: &str, samples: &[Sample]) -> Result<()> {
    let mut out = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .with_context(|| format!("cannot write {}", file.display()))?;
    for sample in samples {
        writeln!(out, "{label}\t{}", sample.to_line())?;
    }
    Ok(())
}

fn print_table(file: &Path, ratio: Option<&[String]>) -> Result<()> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut samples = Samples::default();
    for line in text.lines() {
        let (label, sample) = line
            .split_once('\t')
            .and_then(|(label, rest)| Some((label, Sample::from_line(rest)?)))
            .with_context(|| format!("{} has a line that --save did not write", file.display()))?;
        samples.add(label, sample);
    }
    if let Some([slower, faster]) = ratio {
        let (slower, faster) = (samples.median(slower), samples.median(faster));
        let (Some(slower), Some(faster)) = (slower, faster) else {
            bail!("{} has no runs of one of them", file.display())
        };
        println!("{:.2}", slower / faster);
        return Ok(());
    }
    println!("{}", sample::HEAD);
    samples.rows().for_each(|row| println!("{row}"));
    Ok(())
}
