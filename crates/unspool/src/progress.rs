//! The progress bar of a sync: drawn on a terminal, absent on a pipe.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use unspool_ingest::report::Progress;

/// The bar appears only after this time.
const SHOW_AFTER: Duration = Duration::from_millis(300);
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const BAR_WIDTH: usize = 24;

/// Draws from a background thread until it is dropped.
pub struct ProgressBar {
    pub progress: Arc<Progress>,
    over: Arc<AtomicBool>,
    drawing: Option<JoinHandle<()>>,
}

impl ProgressBar {
    pub fn start() -> ProgressBar {
        ProgressBar::draw(Arc::default())
    }

    pub fn draw(progress: Arc<Progress>) -> ProgressBar {
        let over = Arc::new(AtomicBool::new(false));
        let drawing = stderr().is_terminal().then(|| {
            let (progress, over) = (progress.clone(), over.clone());
            thread::spawn(move || draw(&progress, &over))
        });
        ProgressBar { progress, over, drawing }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(drawing) = self.drawing.take() {
            drawing.thread().unpark();
            let _ = drawing.join();
        }
    }
}

fn draw(progress: &Progress, over: &AtomicBool) {
    let begun = Instant::now();
    let mut drawn = false;
    while !over.load(Ordering::Relaxed) {
        if begun.elapsed() >= SHOW_AFTER {
            let width = crate::paint::terminal_width().unwrap_or(80);
            let line: String = line(progress, begun.elapsed()).chars().take(width - 1).collect();
            let _ = write!(stderr(), "\r{line}\x1b[K");
            drawn = true;
        }
        thread::park_timeout(REDRAW_INTERVAL);
    }
    if drawn {
        let _ = write!(stderr(), "\r\x1b[K");
    }
}

fn line(progress: &Progress, elapsed: Duration) -> String {
    let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let (files, files_done) = (of(&progress.files), of(&progress.files_done));
    let (bytes, done) = (of(&progress.bytes), of(&progress.bytes_done));
    let seconds = elapsed.as_secs_f64().max(0.001);
    let share = if bytes == 0 { 0.0 } else { (done as f64 / bytes as f64).min(1.0) };
    let full = (share * BAR_WIDTH as f64) as usize;
    let rate = done as f64 / seconds;
    let left = if rate > 0.0 { (bytes.saturating_sub(done)) as f64 / rate } else { 0.0 };
    format!(
        "{}{} {:3.0}%  {files_done}/{files} files  {} of {}  {}/s  {} left",
        "█".repeat(full),
        "░".repeat(BAR_WIDTH - full),
        share * 100.0,
        size(done),
        size(bytes),
        size(rate as u64),
        time(left),
    )
}

/// `1.5 MB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ if value < 10.0 => format!("{value:.1} {}", UNITS[unit]),
        _ => format!("{value:.0} {}", UNITS[unit]),
    }
}

fn time(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}
