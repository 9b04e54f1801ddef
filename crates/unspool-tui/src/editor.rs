//! The user's editor, for a file that an agent changed.

use std::path::Path;
use std::process::Command;

/// The command that opens a file at a line, from `VISUAL` or `EDITOR`.
pub fn command(path: &Path, line: u64) -> Command {
    let chosen = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok());
    let chosen = chosen.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "vi".to_owned());
    let mut words = chosen.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let mut command = Command::new(program);
    command.args(words);
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name {
        "code" | "code-insiders" | "codium" | "cursor" | "windsurf" => {
            command.arg("--goto").arg(format!("{}:{line}", path.display()));
        }
        "hx" | "helix" | "zed" | "subl" => {
            command.arg(format!("{}:{line}", path.display()));
        }
        _ => {
            command.arg(format!("+{line}")).arg(path);
        }
    }
    command
}
