//! Tool calls as the log has them: the model's input, the result sent to the model, and the
//! structured result beside it.

use std::fmt::Write as _;

use crate::json::Json;
use crate::outputs::{Output, Printer};
use crate::plan::Project;
use crate::random::Random;
use crate::sources::{NamingStyle, Place, Sources};
use crate::words::Spelling;
use crate::working_set::{Change, WorkingSet};

/// Maximum Bash output; Claude Code moves the rest into a file.
const LONGEST_OUTPUT: usize = 29_000;

#[derive(Default)]
pub struct Call {
    pub tool: &'static str,
    pub input: Json,
    /// The result sent to the model.
    pub content: Json,
    /// `toolUseResult`.
    pub result: Json,
    pub failed: bool,
    pub delegates: bool,
}

/// Generates calls.
pub struct Workshop<'a> {
    pub sources: &'a Sources,
    pub random: Random,
    pub working_set: WorkingSet<'a>,
    pub folder: String,
    pub naming: &'a NamingStyle,
    /// Scale of output sizes, so that a corpus meets both its size and its number of records.
    pub scale: f64,
    /// Maximum size of one output.
    pub limit: usize,
    output: Output,
}

impl<'a> Workshop<'a> {
    pub fn new(sources: &'a Sources, seed: u64, project: &'a Project, scale: f64) -> Workshop<'a> {
        Workshop {
            sources,
            random: Random::new(seed),
            working_set: WorkingSet::new(&project.naming, &project.folder, scale),
            folder: project.folder.clone(),
            naming: &project.naming,
            scale,
            limit: usize::MAX,
            output: Output::default(),
        }
    }

    fn size(&mut self, low: usize, high: usize) -> usize {
        ((self.random.skewed(low, high) as f64 * self.scale) as usize).min(self.limit)
    }

    fn printer(&mut self) -> Printer<'_> {
        let place = Place { naming: self.naming, file: self.random.next() };
        Printer { sources: self.sources, random: &mut self.random, place, folder: &self.folder }
    }

    pub fn call(&mut self) -> Call {
        let mut call = Call::default();
        if self.limit > 700_000 && self.random.below(700) == 0 {
            if self.random.chance(400) {
                self.look_at_image(&mut call);
            } else {
                self.edit(&mut call, true);
            }
            return call;
        }
        // An edit repeats the whole file, too large for a small session.
        let kinds = if self.limit < 30_000 { 655 } else { 1000 };
        match self.random.below(kinds) {
            0..350 => self.bash(&mut call),
            350..655 => self.read(&mut call),
            655..755 => self.edit(&mut call, false),
            755..850 => self.grep(&mut call),
            850..895 => self.write(&mut call),
            895..925 => self.glob(&mut call),
            925..955 => self.plan(&mut call),
            955..970 => self.fetch(&mut call),
            970..994 => self.ask_server(&mut call),
            _ => call.delegates = true,
        }
        call
    }

    fn bash(&mut self, call: &mut Call) {
        call.tool = "Bash";
        let bytes = self.size(60, 26_000).min(LONGEST_OUTPUT);
        let mut output = std::mem::take(&mut self.output);
        self.printer().run(&mut output, bytes);
        let end = output.printed.trim_end().len();
        output.printed.truncate(end);
        call.input.raw("{\"command\":").text(&output.command).raw(",\"description\":");
        call.input.text(&output.purpose).raw("}");
        // Few commands of a healthy project fail, and agents pipe most failures into `tail`.
        call.failed = output.exit_code != 0 && self.random.chance(250);
        if call.failed {
            let message = format!("Exit code {}\n{}", output.exit_code, output.printed);
            call.content.text(&message);
            call.result.raw("\"Error: ").inside(&message).raw("\"");
        } else {
            call.content.text(&output.printed);
            let printed = call.content.0.as_slice();
            let (stdout, stderr): (&[u8], &[u8]) =
                if output.is_error_stream { (b"\"\"", printed) } else { (printed, b"\"\"") };
            call.result.raw("{\"stdout\":").raw(stdout).raw(",\"stderr\":").raw(stderr);
            call.result.raw(",\"interrupted\":false,\"isImage\":false,\"noOutputExpected\":false}");
        }
        self.output = output;
    }

    fn read(&mut self, call: &mut Call) {
        call.tool = "Read";
        if self.random.chance(25) {
            let mut path = format!("{}/", self.folder);
            self.sources.words.path(&mut path, self.random.next());
            call.input.raw("{\"file_path\":").text(&path).raw("}");
            let message = format!(
                "File does not exist. Note: your current working directory is {}.",
                self.folder
            );
            return call.fail(&message);
        }
        let bytes = self.size(1_200, 24_000).min(240_000);
        let index = self.working_set.choose(self.sources, &mut self.random);
        let file = self.working_set.file(index);
        let (text, first) = file.slice(&mut self.random, bytes);
        let lines = text.split('\n').count();
        call.input.raw("{\"file_path\":").text(&file.path);
        if first > 1 {
            call.input.raw(",\"offset\":").number(first as u64);
            call.input.raw(",\"limit\":").number(lines as u64);
        }
        call.input.raw("}");
        call.content.numbered(text, first);
        call.result.raw("{\"type\":\"text\",\"file\":{\"filePath\":").text(&file.path);
        call.result.raw(",\"content\":").text(text).raw(",\"numLines\":").number(lines as u64);
        call.result.raw(",\"startLine\":").number(first as u64).raw(",\"totalLines\":");
        call.result.number(file.count_lines() as u64).raw("}}");
    }

    fn look_at_image(&mut self, call: &mut Call) {
        call.tool = "Read";
        let mut path = format!("{}/docs/", self.folder);
        self.sources.words.name(&mut path, self.random.next(), Spelling::Snake);
        path.push_str(".png");
        call.input.raw("{\"file_path\":").text(&path).raw("}");
        let length = self.random.between(40_000, 480_000) / 4 * 4;
        let mut data = Json::default();
        data.raw("iVBORw0KGgoAAAANSUhEUgAA");
        self.random.base64(&mut data.0, length);
        call.content.raw("[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":\"");
        call.content.raw(&data.0).raw("\",\"media_type\":\"image/png\"}}]");
        call.result.raw("{\"type\":\"image\",\"file\":{\"base64\":\"").raw(&data.0);
        call.result
            .raw("\",\"type\":\"image/png\",\"originalSize\":")
            .number(length as u64 / 4 * 3);
        call.result.raw(
            ",\"dimensions\":{\"originalWidth\":1440,\"originalHeight\":900,\
             \"displayWidth\":1440,\"displayHeight\":900}}}",
        );
    }

    fn edit(&mut self, call: &mut Call, large: bool) {
        call.tool = "Edit";
        let index = if large {
            let bytes = self.random.between(90_000, 900_000);
            self.working_set.choose_large(self.sources, &mut self.random, bytes)
        } else {
            self.working_set.choose_small(self.sources, &mut self.random)
        };
        let file = self.working_set.file(index);
        let change = file.change(self.sources, &mut self.random);
        call.input.raw("{\"replace_all\":false,\"file_path\":").text(&file.path);
        call.input.raw(",\"old_string\":").text(&change.before);
        call.input.raw(",\"new_string\":").text(&change.after).raw("}");
        if !large && self.random.chance(30) {
            let message =
                format!("String to replace not found in file.\nString: {}", change.before);
            call.content.raw("\"<tool_use_error>").inside(&message).raw("</tool_use_error>\"");
            call.result.raw("\"Error: ").inside(&message).raw("\"");
            call.failed = true;
            return;
        }
        call.content.raw("\"The file ").inside(&file.path).raw(
            " has been updated successfully. (file state is current in your context — no need to \
             Read it back)\"",
        );
        call.result.raw("{\"filePath\":").text(&file.path);
        call.result.raw(",\"oldString\":").text(&change.before);
        call.result.raw(",\"newString\":").text(&change.after);
        call.result.raw(",\"originalFile\":").text(&file.content).raw(",\"structuredPatch\":[");
        patch(&mut call.result, &change);
        call.result.raw("],\"userModified\":false,\"replaceAll\":false}");
        self.working_set.apply(index, &change);
    }

    fn write(&mut self, call: &mut Call) {
        call.tool = "Write";
        let bits = self.random.next();
        let bytes = self.size(400, 14_000);
        let place = Place { naming: self.naming, file: bits };
        let mut content = String::new();
        self.sources.code(&mut content, &mut self.random, place, bytes);
        let index = self.working_set.put(self.sources, bits, content);
        let file = self.working_set.file(index);
        call.input.raw("{\"file_path\":").text(&file.path).raw(",\"content\":");
        call.input.text(&file.content).raw("}");
        call.content
            .raw("\"File created successfully at: ")
            .inside(&file.path)
            .raw(" (file state is current in your context — no need to Read it back)\"");
        call.result.raw("{\"type\":\"create\",\"filePath\":").text(&file.path);
        call.result.raw(",\"content\":").text(&file.content);
        call.result.raw(",\"structuredPatch\":[],\"originalFile\":null,\"userModified\":false}");
    }

    fn grep(&mut self, call: &mut Call) {
        call.tool = "Grep";
        let bytes = self.size(100, 12_000).min(40_000);
        let mut pattern = String::new();
        self.sources.words.name(&mut pattern, self.random.next(), Spelling::Snake);
        call.input.raw("{\"pattern\":").text(&pattern).raw(",\"output_mode\":\"content\"}");
        let mut found = String::new();
        self.printer().matches(&mut found, bytes);
        let lines = found.split('\n').count() as u64;
        call.content.text(&found);
        call.result.raw("{\"mode\":\"content\",\"numFiles\":0,\"filenames\":[],\"content\":");
        call.result.raw(&call.content.0).raw(",\"numLines\":").number(lines);
        call.result.raw(",\"totalLines\":").number(lines).raw("}");
    }

    fn glob(&mut self, call: &mut Call) {
        call.tool = "Glob";
        call.input.raw("{\"pattern\":\"**/*.rs\"}");
        let count = self.random.between(3, 60);
        let mut all = String::new();
        call.result.raw("{\"filenames\":[");
        for index in 0..count {
            let from = all.len();
            self.sources.words.path(&mut all, self.random.next());
            call.result.raw(if index > 0 { "," } else { "" }).text(&all[from..]);
            all.push('\n');
        }
        call.content.text(all.trim_end());
        call.result.raw("],\"durationMs\":").number(self.random.below(400) as u64);
        call.result.raw(",\"numFiles\":").number(count as u64).raw(",\"truncated\":false,");
        call.result.raw("\"totalMatches\":").number(count as u64);
        call.result.raw(",\"countIsComplete\":true}");
    }

    fn plan(&mut self, call: &mut Call) {
        call.tool = "TodoWrite";
        let mut list = Json::default();
        for index in 0..self.random.between(2, 7) {
            let mut what = String::new();
            let words = self.random.between(4, 11);
            self.sources.words.prose(&mut what, &mut self.random, words);
            let status = ["completed", "in_progress", "pending", "pending"][index.min(3)];
            list.raw(if index > 0 { "," } else { "" }).raw("{\"content\":").text(&what);
            list.raw(",\"status\":").text(status);
            list.raw(",\"activeForm\":\"Doing: ").inside(&what).raw("\"}");
        }
        call.input.raw("{\"todos\":[").raw(&list.0).raw("]}");
        call.content.text(
            "Todos have been modified successfully. Ensure that you continue to use the todo list \
             to track your progress. Please proceed with the current tasks if applicable",
        );
        call.result.raw("{\"oldTodos\":[],\"newTodos\":[").raw(&list.0).raw("]}");
    }

    fn fetch(&mut self, call: &mut Call) {
        call.tool = "WebFetch";
        let mut url = "https://docs.example.org/".to_owned();
        self.sources.words.name(&mut url, self.random.next(), Spelling::Snake);
        call.input.raw("{\"url\":").text(&url).raw(",\"prompt\":\"What does it say?\"}");
        if self.random.chance(150) {
            return call.fail("Request failed with status code 404");
        }
        let words = self.size(80, 1200);
        let mut page = "# ".to_owned();
        self.sources.words.prose(&mut page, &mut self.random, words);
        call.content.text(&page);
        call.result.raw("{\"bytes\":").number(self.random.between(2_000, 900_000) as u64);
        call.result.raw(",\"code\":200,\"codeText\":\"OK\",\"result\":").text(&page);
        call.result.raw(",\"durationMs\":").number(self.random.between(90, 6000) as u64);
        call.result.raw(",\"url\":").text(&url).raw("}");
    }

    fn ask_server(&mut self, call: &mut Call) {
        call.tool = self.random.pick(&[
            "mcp__github__search_issues",
            "mcp__linear__list_issues",
            "mcp__postgres__query",
            "mcp__station__get_reading",
        ]);
        let mut query = String::new();
        let words = self.random.between(2, 8);
        self.sources.words.prose(&mut query, &mut self.random, words);
        call.input.raw("{\"query\":").text(&query).raw(",\"limit\":");
        call.input.number(self.random.between(1, 50) as u64).raw("}");
        if self.random.chance(80) {
            return call.fail("MCP error -32603: connection refused");
        }
        let bytes = self.size(200, 14_000);
        let mut answer = String::new();
        self.printer().document(&mut answer, bytes);
        call.content.text(&answer);
        call.result.raw(&call.content.0);
    }
}

impl Call {
    pub fn fail(&mut self, message: &str) {
        self.content.text(message);
        self.result.raw("\"Error: ").inside(message).raw("\"");
        self.failed = true;
    }

    /// Fields that only the results of some tools have.
    pub fn tail(&self) -> &'static str {
        match self.tool {
            "Bash" => ",\"sandboxed\":false",
            tool if tool.starts_with("mcp__") => ",\"mcpCallNotReadOnly\":\"no_hint\"",
            _ => "",
        }
    }

    pub fn permission(&self) -> &'static str {
        match self.tool {
            "Bash" => {
                "{\"decision\":\"accept\",\"source\":\"config\",\"reasonType\":\"subcommandResults\"}"
            }
            "TodoWrite" => "{\"decision\":\"accept\",\"source\":\"config\"}",
            _ => {
                "{\"decision\":\"accept\",\"source\":\"user_permanent\",\"reasonType\":\"rule\",\
                 \"ruleSource\":\"userSettings\"}"
            }
        }
    }
}

/// One hunk in unified diff notation.
fn patch(out: &mut Json, change: &Change) {
    let lines = |text: &str| if text.is_empty() { 0 } else { text.split('\n').count() };
    let (above, below) = (lines(&change.above), lines(&change.below));
    let start = change.first - above;
    let mut head = String::new();
    let _ = write!(
        head,
        "{{\"oldStart\":{start},\"oldLines\":{},\"newStart\":{start},\"newLines\":{},\"lines\":[",
        above + below + lines(&change.before),
        above + below + lines(&change.after)
    );
    out.raw(head);
    let mut comma = "";
    let parts =
        [(" ", &change.above), ("-", &change.before), ("+", &change.after), (" ", &change.below)];
    for (mark, text) in parts {
        for line in text.split('\n').filter(|_| !text.is_empty()) {
            out.raw(comma).raw("\"").raw(mark).inside(line).raw("\"");
            comma = ",";
        }
    }
    out.raw("]}");
}
