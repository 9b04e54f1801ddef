//! Tool families: what a tool does, by its name. This is the one table of tool names; outlines, the
//! archive and the presenter read it. A new tool is one line of `TOOLS`.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// What a tool does. The presenter has one function per family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    RunShell,
    BackgroundOutput,
    ReadFile,
    EditFile,
    WriteFile,
    ApplyPatch,
    ListFiles,
    SearchFiles,
    SearchTools,
    WriteTodos,
    CreateTask,
    UpdateTask,
    ListTasks,
    ExitPlanMode,
    AskQuestion,
    SearchWeb,
    FetchWeb,
    StartAgent,
    LoadSkill,
    /// Keeps something beyond the session, or looks up what was kept.
    Memory,
}

/// Tool names with their families. Lookup ignores case and punctuation (`normalise`). The archive
/// looks planning tools and memories up by their exact names, so these are listed in every spelling in
/// use.
const TOOLS: &[(&str, Family)] = &[
    ("bash", Family::RunShell),
    ("shell", Family::RunShell),
    ("localshell", Family::RunShell),
    ("localshellcall", Family::RunShell),
    ("execcommand", Family::RunShell),
    ("runshellcommand", Family::RunShell),
    ("runinterminal", Family::RunShell),
    ("powershell", Family::RunShell),
    ("runcommands", Family::RunShell),
    ("execute", Family::RunShell),
    ("bashoutput", Family::BackgroundOutput),
    ("readbash", Family::BackgroundOutput),
    ("read", Family::ReadFile),
    ("readfile", Family::ReadFile),
    ("view", Family::ReadFile),
    ("viewimage", Family::ReadFile),
    ("readfiles", Family::ReadFile),
    ("edit", Family::EditFile),
    ("multiedit", Family::EditFile),
    ("replace", Family::EditFile),
    ("strreplace", Family::EditFile),
    ("editfile", Family::EditFile),
    ("editor", Family::EditFile),
    ("notebookedit", Family::EditFile),
    ("write", Family::WriteFile),
    ("writefile", Family::WriteFile),
    ("create", Family::WriteFile),
    ("applypatch", Family::ApplyPatch),
    ("glob", Family::ListFiles),
    ("list", Family::ListFiles),
    ("ls", Family::ListFiles),
    ("listdirectory", Family::ListFiles),
    ("grep", Family::SearchFiles),
    ("searchfilecontent", Family::SearchFiles),
    ("grepsearch", Family::SearchFiles),
    ("rg", Family::SearchFiles),
    ("searchcodebase", Family::SearchFiles),
    ("toolsearch", Family::SearchTools),
    ("TodoWrite", Family::WriteTodos),
    ("todowrite", Family::WriteTodos),
    ("write_todos", Family::WriteTodos),
    ("todo_write", Family::WriteTodos),
    ("update_plan", Family::WriteTodos),
    ("TaskCreate", Family::CreateTask),
    ("TaskUpdate", Family::UpdateTask),
    ("tasklist", Family::ListTasks),
    ("taskget", Family::ListTasks),
    ("exitplanmode", Family::ExitPlanMode),
    ("exitspecmode", Family::ExitPlanMode),
    ("askuserquestion", Family::AskQuestion),
    ("askuser", Family::AskQuestion),
    ("askquestion", Family::AskQuestion),
    ("question", Family::AskQuestion),
    ("requestuserinput", Family::AskQuestion),
    ("websearch", Family::SearchWeb),
    ("googlewebsearch", Family::SearchWeb),
    ("webfetch", Family::FetchWeb),
    ("fetchwebcontent", Family::FetchWeb),
    ("fetchurl", Family::FetchWeb),
    ("fetch", Family::FetchWeb),
    ("agent", Family::StartAgent),
    ("task", Family::StartAgent),
    ("spawnagent", Family::StartAgent),
    ("subagent", Family::StartAgent),
    ("invokeagent", Family::StartAgent),
    ("skill", Family::LoadSkill),
    ("activateskill", Family::LoadSkill),
    ("memory", Family::Memory),
    ("Memory", Family::Memory),
    ("save_memory", Family::Memory),
    ("store_memory", Family::Memory),
    ("create_memory", Family::Memory),
    ("update_memory", Family::Memory),
    ("delete_memory", Family::Memory),
    ("search_memory", Family::Memory),
    ("read_memory", Family::Memory),
    ("write_memory", Family::Memory),
    ("list_memories", Family::Memory),
    // The memory server of the MCP project.
    ("mcp__memory__create_entities", Family::Memory),
    ("mcp__memory__create_relations", Family::Memory),
    ("mcp__memory__add_observations", Family::Memory),
    ("mcp__memory__delete_entities", Family::Memory),
    ("mcp__memory__delete_observations", Family::Memory),
    ("mcp__memory__delete_relations", Family::Memory),
    ("mcp__memory__read_graph", Family::Memory),
    ("mcp__memory__search_nodes", Family::Memory),
    ("mcp__memory__open_nodes", Family::Memory),
];

impl Family {
    /// The family of a tool. Agents spell one tool in different ways.
    pub fn of(name: &str) -> Option<Family> {
        static FAMILIES: LazyLock<FxHashMap<String, Family>> = LazyLock::new(|| {
            TOOLS.iter().map(|(name, family)| (normalise(name), *family)).collect()
        });
        FAMILIES.get(&normalise(name)).copied()
    }

    /// It changes files.
    pub fn is_edit(self) -> bool {
        matches!(self, Family::EditFile | Family::WriteFile | Family::ApplyPatch)
    }

    /// It writes a plan or a task list.
    pub fn is_plan(self) -> bool {
        matches!(self, Family::WriteTodos | Family::CreateTask | Family::UpdateTask)
    }
}

/// Whether a call of a tool waits for a person before it returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsksUser {
    /// The tool is a question.
    Always,
    /// Agents ask for permission unless a rule allows the call.
    Usually,
    /// Agents ask about some calls: a file outside of the project, a tool of a plugin.
    Sometimes,
    Rarely,
}

impl AsksUser {
    pub fn of(tool: &str) -> AsksUser {
        match Family::of(tool) {
            Some(Family::AskQuestion | Family::ExitPlanMode) => AsksUser::Always,
            Some(
                Family::RunShell
                | Family::EditFile
                | Family::WriteFile
                | Family::ApplyPatch
                | Family::SearchWeb
                | Family::FetchWeb,
            ) => AsksUser::Usually,
            Some(
                Family::ReadFile | Family::ListFiles | Family::SearchFiles | Family::LoadSkill,
            ) => AsksUser::Sometimes,
            Some(
                Family::BackgroundOutput
                | Family::SearchTools
                | Family::WriteTodos
                | Family::CreateTask
                | Family::UpdateTask
                | Family::ListTasks
                | Family::StartAgent,
            ) => AsksUser::Rarely,
            // Tools of MCP servers.
            Some(Family::Memory) | None if tool.starts_with("mcp__") => AsksUser::Usually,
            Some(Family::Memory) | None => AsksUser::Sometimes,
        }
    }
}

/// The MCP server of a tool, as agents name such tools: `mcp__server__tool`.
pub fn mcp_server(tool: &str) -> Option<&str> {
    let (server, tool) = tool.strip_prefix("mcp__")?.split_once("__")?;
    Some(server).filter(|server| !server.is_empty() && !tool.is_empty())
}

/// True if the tool changes files.
pub fn is_edit(name: &str) -> bool {
    Family::of(name).is_some_and(Family::is_edit)
}

/// True if the tool writes a plan or task list.
pub fn is_plan(name: &str) -> bool {
    Family::of(name).is_some_and(Family::is_plan)
}

/// Names of the planning tools as agents spell them, for index lookups in the archive.
pub fn plan_tool_names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().filter(|(_, family)| family.is_plan()).map(|(name, _)| *name)
}

/// The filter of the tools that keep or look up memories.
pub const MEMORY_FILTER: &str = "memory";

/// The tools that a filter by tool means: the one of this name, or for `memory` all of its family, in
/// the spellings of agents.
pub fn filtered_by(filter: &str) -> Vec<&str> {
    if filter != MEMORY_FILTER {
        return vec![filter];
    }
    TOOLS.iter().filter(|(_, family)| *family == Family::Memory).map(|(name, _)| *name).collect()
}

/// True for a tool from inside which other calls are made: the code mode of Codex. Its log lists
/// those calls beside it, in the same model call.
pub fn makes_other_calls(name: &str) -> bool {
    matches!(name, "exec" | "wait")
}

/// True for a tool that the provider runs while the model still writes, one call after the other:
/// the web search of Anthropic and OpenAI. (`WebSearch` of Claude Code is a tool of the agent.)
pub fn is_run_by_provider(name: &str) -> bool {
    name == "web_search"
}

/// A tool name in lower case, without `_`, `-` and `.`.
fn normalise(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law 6: outlines, the archive and the presenter agree on what a tool does.
    #[test]
    fn a_tool_has_one_family_however_it_is_spelled() {
        for (at, (name, family)) in TOOLS.iter().enumerate() {
            assert!(TOOLS[..at].iter().all(|(other, _)| other != name), "{name}");
            assert_eq!(Family::of(name), Some(*family), "{name}");
            assert_eq!(Family::of(&name.to_uppercase()), Some(*family), "{name}");
        }
        for name in ["str_replace", "apply_patch", "MultiEdit", "write_file"] {
            assert!(is_edit(name) && !is_plan(name), "{name}");
        }
        assert!(plan_tool_names().count() == 7 && plan_tool_names().all(is_plan));
        assert_eq!(Family::of("mcp__files__edit"), None);
    }

    // R-002-43
    #[test]
    fn memory_operations_are_a_family_with_a_filter() {
        for name in ["memory", "save_memory", "SaveMemory", "mcp__memory__read_graph"] {
            assert_eq!(Family::of(name), Some(Family::Memory), "{name}");
        }
        assert_eq!(Family::of("mcp__files__memory"), None);
        assert!(filtered_by("memory").contains(&"mcp__memory__add_observations"));
        assert!(filtered_by("memory").contains(&"memory"));
        assert_eq!(filtered_by("Bash"), ["Bash"]);
    }

    #[test]
    fn a_tool_of_an_mcp_server_names_it() {
        assert_eq!(mcp_server("mcp__files__edit"), Some("files"));
        assert_eq!(mcp_server("mcp__my_server__get__one"), Some("my_server"));
        for other in ["Edit", "mcp__files", "mcp____edit", "mcp__files__", "files__edit"] {
            assert_eq!(mcp_server(other), None, "{other}");
        }
    }
}
