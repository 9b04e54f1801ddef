"""How `live-states` sets up and drives each agent."""
import json


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))


class Agent:
    """How to start and drive an agent. Screens are matched without their borders."""
    ready = r"❯|›"
    permission = r"Do you want to proceed"
    quit = "/exit"
    interrupt = ("Escape",)
    # Whether permission requests are recorded with hooks, and without.
    reports_permission = {True: True, False: False}
    has_hooks = True
    # Also given with hooks.
    hook_flags = []
    # Part of the command lines of processes that stay when the agent is quit.
    daemon = None
    command: list

    def prepare(self, run):
        """Writes the settings and returns the environment."""
        raise NotImplementedError


class ClaudeCode(Agent):
    command = ["claude", "--permission-mode", "default"]

    def prepare(self, run):
        known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        write(run.home / ".claude.json", {
            "hasCompletedOnboarding": True, "hasSeenAutoDefaultNudge": True, "theme": "dark",
            "projects": {str(run.project): known},
            "customApiKeyResponses": {"approved": ["mock-key"], "rejected": []}})
        rules = {"allow": ["Bash"], "ask": ["Bash(./deploy.sh)"]}
        write(run.home / ".claude/settings.json", {"permissions": rules})
        names = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING",
                 "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")
        return {"ANTHROPIC_BASE_URL": run.url, "ANTHROPIC_API_KEY": "mock-key"} | dict.fromkeys(names, "1")


class Codex(Agent):
    command = ["codex"]
    hook_flags = ["--dangerously-bypass-hook-trust"]
    daemon = "app-server"
    permission = r"Would you like to run"
    quit = "/quit"

    def prepare(self, run):
        write(run.home / ".codex/config.toml", f"""model = "mock-model"
model_provider = "mock"
approval_policy = "on-request"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.mock]
name = "Mock"
base_url = "{run.url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
[projects."{run.project}"]
trust_level = "trusted"
[analytics]
enabled = false
""")
        write(run.home / ".codex/rules/default.rules",
              'prefix_rule(pattern=["./deploy.sh"], decision="prompt")\n')
        return {"MOCK_KEY": "mock-key"}


class OpenCode(Agent):
    command = ["opencode"]
    ready = r"Ask anything|ctrl\+p commands"
    permission = r"Permission required"
    interrupt = ("Escape", "Escape")
    reports_permission = {False: False}
    has_hooks = False

    def prepare(self, run):
        model = {"name": "Mock", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
        write(run.home / ".config/opencode/opencode.json", {
            "model": "mock/mock-model", "small_model": "mock/mock-model", "lsp": False,
            "formatter": False, "autoupdate": False,
            "permission": {"bash": {"*": "allow", "./deploy.sh*": "ask"}},
            "provider": {"mock": {"npm": "@ai-sdk/anthropic", "name": "Mock", "models": {"mock-model": model},
                                  "options": {"baseURL": run.url + "/v1", "apiKey": "mock-key"}}}})
        names = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        return {f"OPENCODE_DISABLE_{name}": "1" for name in names}


class Gemini(Agent):
    command = ["gemini", "-m", "gemini-2.5-pro"]
    ready = r"Type your message"
    permission = r"Allow execution of"
    quit = "/quit"

    def prepare(self, run):
        write(run.home / ".gemini/settings.json", {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}})
        rule = '[[rule]]\ntoolName = "run_shell_command"\n'
        write(run.home / ".gemini/policies/rules.toml",
              f'{rule}decision = "allow"\nallowRedirection = true\npriority = 100\n'
              f'{rule}commandPrefix = "./deploy.sh"\ndecision = "ask_user"\npriority = 200\n')
        return {"GOOGLE_GEMINI_BASE_URL": run.url, "GEMINI_API_KEY": "mock-key"}


class Copilot(Agent):
    command = ["copilot"] + [f"--allow-tool=shell({name})" for name in (
        "./build.sh", "./after.sh", "./endless.sh", "touch", "sleep", "echo", "tail")]
    permission = r"Do you want to run this command"
    interrupt = ("Escape", "Escape")
    reports_permission = {True: True, False: True}

    def prepare(self, run):
        write(run.home / ".copilot/config.json", {"trusted_folders": [str(run.project)], "banner": "never"})
        return {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": run.url, "COPILOT_MODEL": "claude-sonnet-4",
                "COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_PROVIDER_API_KEY": "mock-key"}


class Qwen(Agent):
    """Driven by `agents` only."""
    command = ["qwen"]

    def prepare(self, run):
        model = {"id": "mock-model", "name": "Mock", "envKey": "MOCK_KEY", "baseUrl": run.url}
        write(run.home / ".qwen/settings.json", {
            "security": {"auth": {"selectedType": "anthropic"}}, "model": {"name": "mock-model"},
            "modelProviders": {"anthropic": [model]}, "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False}})
        return {"MOCK_KEY": "mock-key", "ANTHROPIC_API_KEY": "mock-key", "ANTHROPIC_BASE_URL": run.url,
                "ANTHROPIC_MODEL": "mock-model"}


class Droid(Agent):
    """Driven by `agents` only."""
    command = ["droid"]

    def prepare(self, run):
        model = {"model": "mock-model", "displayName": "Mock", "baseUrl": run.url, "apiKey": "mock-key",
                 "provider": "anthropic", "maxOutputTokens": 8000}
        write(run.home / ".factory/settings.json", {
            "customModels": [model], "sessionDefaultSettings": {"model": "custom:Mock-0"}})
        return {"FACTORY_DISABLE_KEYRING": "1", "FACTORY_AIRGAP_ENABLED": "1"}


AGENTS = {"claude-code": ClaudeCode(), "codex": Codex(), "opencode": OpenCode(),
          "gemini": Gemini(), "copilot": Copilot()}
# Agents that `agents` drives, too.
CHAT_AGENTS = AGENTS | {"qwen": Qwen(), "droid": Droid()}
