"""Names of files that tools execute or obey by themselves, by category, and of files that hold secrets.

One table says which names these are and how a change of each category is treated. `ask`: the user is asked in
every approval mode; with nobody there an edit is denied, and what a command wrote is put aside. `review`: the file
runs by itself too, but ordinary work changes it all the time (a Makefile, conftest.py, package.json), so a change
is allowed, and the request of a work item lists it for the reviewer.

Patterns are lower-case. `name/` is a folder anywhere, `parent/name` an entry of a folder, all else a file's name.
"""

from __future__ import annotations

from typing import Literal

from daiku.dataclass import dataclass
from daiku.texts.text import Text, text


@dataclass(frozen=True, slots=True)
class Category:
    """Files that one kind of tool executes or obeys by itself."""

    why: Text
    treatment: Literal["ask", "review"]
    patterns: str


PIPELINE = Category(
    text("protected.ci"), "ask",
    ".github/workflows .github/actions .github/settings.yml .forgejo/workflows .gitea/workflows .woodpecker/ .circleci/ .buildkite/"
    " .gitlab/ .teamcity/ .azuredevops/ .azure-pipelines/ .pipelines/ .semaphore/ .tekton/ .builds/ .zuul.d/ zuul.d/ .codefresh/"
    " .harness/ .jenkins/ .kode/ .jfrog-pipelines/ .erda/ .dagger/ .prow/ .ci/ .gitlab-ci/ .vsts/ .depot/ .blacksmith/ .onedev/"
    " .spin/ .concourse/ .drone/ ci_scripts/ .platform/ .upsun/ .ebextensions/ .amplify/ .speakeasy/ .vercel/"
    " .gitlab-ci.y*ml *.gitlab-ci.y*ml jenkinsfile* jenkins-x*.yml azure-pipelines*.y*ml .azure-pipelines*.y*ml .vsts-ci.y*ml"
    " bitbucket-pipelines.y*ml .travis.y*ml .drone.y*ml .drone.star .drone.jsonnet .appveyor.y*ml appveyor.y*ml .woodpecker.y*ml"
    " cloudbuild*.y*ml cloudbuild.json *.cloudbuild.y*ml .cirrus.y*ml .cirrus.star .readthedocs.y*ml readthedocs.y*ml bitrise.y*ml"
    " render.y*ml skaffold.y*ml action.y*ml buildkite.y*ml buildkite.*.y*ml buildkite.json .buildkite.y*ml codeship-*.yml"
    " semaphore.y*ml wercker.y*ml .shippable.y*ml shippable.y*ml circle.y*ml codefresh.y*ml screwdriver.y*ml buildspec*.y*ml"
    " appspec.y*ml amplify.y*ml netlify.toml vercel.json now.json fly.toml procfile heroku.y*ml railway.json railway.toml"
    " nixpacks.toml railpack.json .platform.app.yaml wrangler.toml wrangler.json* .build.y*ml .zuul.y*ml zuul.y*ml .vela.y*ml"
    " codemagic.y*ml bxci.y*ml .releaserc* release.config.* .release-it.* .goreleaser.y*ml goreleaser.y*ml .rultor.y*ml zerops.y*ml"
    " .concord.y*ml concord.y*ml .onedev-buildspec.y*ml .scrutinizer.y*ml .gocd.y*ml *.gocd.y*ml .hound.y*ml bamboo.y*ml"
    " bamboo-specs/ pipeline.y*ml pipeline_config.yml .pipeline.y*ml .dependabot/ app.yaml snapcraft.y*ml earthfile .earthly/ tekton.y*ml .styleci.y*ml"
    " prefect.y*ml helmfile.y*ml .do/ .koyeb/ .nevercode/ .northflank/ lighthouserc.* .lighthouserc.* frogbot-config.yml"
    " .taskcluster.y*ml .packit.y*ml packit.y*ml .copr/ .obs/ .cico/ tugboat.y*ml .tugboat/ .lando.y*ml *.jenkinsfile"
    " azure-pipelines/ vercel.ts procfile.* dagger.json garden.y*ml werf*.y*ml okteto.y*ml devspace.y*ml atlantis.y*ml digger.y*ml"
    " dangerfile* .github/codeql .github/workflow-templates apphosting.y*ml captain-definition dokku.json buddy.y*ml azure.y*ml"
    " dist-workspace.toml release-plz.toml zappa_settings.* config/deploy.yml config/deploy.rb trivy.y*ml qodana.y*ml"
    " brigade.js brigade.ts fleet.y*ml apprunner.y*ml gitlab-ci*.y*ml drone.y*ml northflank.json zeabur.json lagoon.y*ml flux-system/"
    " spacefile mergify.y*ml kodiak.toml .eas/ .nais/",
)  # fmt: skip
"""Files by which a server builds, checks, or deploys: a work item changes them only with a person's approval."""
CATEGORIES = (
    PIPELINE,
    Category(text("protected.git_files"), "ask", ".git/"),
    Category(text("protected.mercurial_files"), "ask", ".hg/ .sl/ .jj/ .bzr/ _darcs/"),
    Category(text("protected.subversion_files"), "ask", ".svn/"),
    Category(
        text("protected.editor_programs"), "ask",
        ".vscode/ .config/code .config/code_-_insiders .config/vscodium .config/cursor .config/windsurf application_support/code"
        " application_support/code_-_insiders application_support/vscodium application_support/cursor application_support/windsurf"
        " roaming/code roaming/code_-_insiders roaming/vscodium roaming/cursor roaming/windsurf .vscode-server/data .theia/",
    ),
    Category(text("protected.editor_run"), "ask", ".idea/ .run/ *.run.xml .fleet/ nbproject/ .settings/ .externaltoolbuilders/"),
    Category(text("protected.editor_tasks"), "ask", ".zed/ .nova/ .helix/ *.sublime-project *.sublime-build"),
    Category(text("protected.editor_settings"), "ask", ".vs/ .fleet.json launchsettings.json .vscode-test.*"),
    Category(text("protected.workspace_file"), "ask", "*.code-workspace"),
    Category(text("protected.tasks"), "ask", "tasks.json"),
    Category(text("protected.launch"), "ask", "launch.json"),
    Category(
        text("protected.language_server"), "ask",
        ".clangd .ccls .luarc.json* .rubocop.y*ml .solargraph.y*ml .standard.y*ml .pylintrc pylintrc .prettierrc.*js .prettierrc.*ts"
        " prettier.config.* .eslintrc.*js .eslintrc.*ts eslint.config.* stylelint.config.* .stylelintrc.*js .markdownlint*.*js"
        " .markdownlint-cli2.* commitlint.config.* .mocharc.* .babelrc.*js .postcssrc.*js omnisharp.json .merlin .ghci .hie.y*ml"
        " hie.y*ml .dialyzer* .sorbet/ .bsp/ .credo.exs .formatter.exs biome.json* .phpactor.json"
        " .php-cs-fixer*.php phpstan*.neon psalm.xml .java-formatter* taplo.toml .taplo.toml .marksman.toml .vale.ini",
    ),
    Category(
        text("protected.hidden_code"), "ask",
        ".*.js .*.cjs .*.mjs .*.ts .*.mts .*.cts .*.py .*.rb .*.lua .*.sh .*.bash .*.zsh .*.fish .*.el .*.star .*.kts .*.ps1",
    ),
    Category(text("protected.daiku_settings"), "ask", ".daiku/"),
    Category(text("protected.hidden"), "ask", ".daikuignore"),
    Category(text("protected.agent_hooks_and_rules"), "ask", ".claude/"),
    Category(text("protected.agent_hooks"), "ask", ".github/hooks"),
    Category(text("protected.agent_prompts"), "ask", ".github/prompts *.prompt.md .prompts/"),
    Category(
        text("protected.agent_settings"), "ask",
        ".codex/ .cursor/ .gemini/ .continue/ .roo/ .windsurf/ .agents/ .agent/ .kiro/ .trae/ .junie/ .amazonq/ .augment/ .opencode/"
        " .qwen/ .kilocode/ .aiassistant/ .cline/ .goose/ .devin/ .codeium/ .tabnine/ .cody/ .sourcegraph/ .openhands/ .zencoder/"
        " .firebender/ .rovodev/ .qodo/ .factory/ .warp/ .ruler/ .jules/ .idx/ .mcp/ .skills/ .crush/ .codebuddy/ .iflow/ .amp/ .pi/"
        " .tabby/ .supermaven/ .copilot/ .bolt/ .v0/ .lovable/ .pearai/ .void/ .aide/ .grok/ .kimi/ .refact/ .plandex/ .swe-agent/"
        " .aider/ .llm/ .ai/ .mentat/ .sweep/ .coderabbit/ .github/copilot .gitlab/duo .serena/ .specify/ .taskmaster/ .bmad-core/ eca/config.json .eca/",
    ),
    Category(
        text("protected.agent_rules_of_one"), "ask",
        ".clinerules/ .github/instructions .github/agents .github/chatmodes .github/skills",
    ),
    Category(
        text("protected.agent_rules"), "ask",
        "agents.md agents.override.md agents.local.md claude.md claude.local.md gemini.md qwen.md warp.md crush.md agent.md jules.md"
        " grok.md iflow.md codebuddy.md amp.md kimi.md replit.md skill.md airules.md"
        " opencode.json* crush.json .crush.json .aider.conf.y*ml .aider.model.settings.yml .kilocoderules* copilot-instructions.md"
        " *.instructions.md *.chatmode.md *.agent.md *.mdc .cursorrules .windsurfrules .clinerules* .roorules* .roomodes .goosehints"
        " .rules .airules .ai-rules .continuerules .augment-guidelines .junie-guidelines .llm-rules .codegptrules .phindrules"
        " .codyrules .voidrules .traerules project_rules.md .coderabbit.y*ml .pr_agent.toml sweep.y*ml firebender.json"
        " .greptile* greptile.json .bugbot.md bugbot.md .mentat_config.json .openhands_instructions .hintrules"
        " .qodo.toml .github/copilot-instructions.md .sourcery.y*ml .ellipsis.y*ml ellipsis.y*ml .gptignore memory-bank/",
    ),
    Category(
        text("protected.mcp_servers"), "ask",
        ".mcp.json mcp.json mcp_config.json cline_mcp_settings.json *.mcp.json mcp-config.json mcp_settings.json mcp.toml .mcp.toml"
        " claude_desktop_config.json mcp.y*ml .mcp.y*ml",
    ),
    Category(
        text("protected.git_hooks"), "ask",
        ".husky/ .githooks/ .git-hooks/ .git_hooks/ .hooks/ .pre-commit-config.y*ml .pre-commit-hooks.y*ml lefthook*.y*ml"
        " .lefthook*.y*ml lefthook.toml lefthook.json .huskyrc* .lintstagedrc* lint-staged.config.* .overcommit.y*ml"
        " .simple-git-hooks.* simple-git-hooks.* .captain-hook* captainhook.json grumphp.y*ml .cz.toml .czrc .gitlint prek.toml",
    ),
    Category(
        text("protected.container"), "ask",
        ".devcontainer/ .devcontainer.json devcontainer.json *.devcontainer.json devcontainer-feature.json .gitpod.y*ml .gitpod.dockerfile .gitpod/ .ona/"
        " .devfile.y*ml devfile.y*ml .codesandbox/ .stackblitzrc .replit replit.nix .coder/ .daytona/ .codespaces/ sandbox.config.json",
    ),
    Category(
        text("protected.build_settings"), "ask",
        ".mvn/ gradle/wrapper .cargo/config.toml .cargo/config .bazelrc .bazeliskrc .bazelversion gradle-wrapper.properties"
        " gradle-wrapper.jar init.gradle* settings.gradle settings.gradle.kts gradle.properties .gradle/init.d gradle/init.d"
        " directory.build.* directory.packages.props directory.solution.* .buckconfig .pants.rc .sbtopts .jvmopts project/plugins.sbt"
        " .scalafix.conf .tiltignore tiltfile rust-toolchain rust-toolchain.toml global.json .xcode.env* pytest.ini .pytest.ini"
        " pytest.toml .pytest.toml .coveragerc .testcaferc.* .noserc nose.cfg .rspec .phpunit.xml ava.config.* .hushrc",
    ),
    Category(text("protected.bundled_package_manager"), "ask", ".yarn/releases .yarn/plugins mvnw gradlew mvnw.cmd gradlew.bat"),
    Category(
        text("protected.package_settings"), "ask",
        ".bundle/config nuget.config .npmrc .yarnrc .yarnrc.y*ml .pnpmfile.* pnpmfile.* bunfig.toml .bunfig.toml .bowerrc pip.conf"
        " pip.ini .pypirc .condarc uv.toml poetry.toml .gemrc binding.gyp .pip/ .ansible.cfg ansible.cfg .wgetrc .curlrc"
        " .cargo/credentials .cargo/credentials.toml auth.json .pearrc paket.dependencies .pdm.toml .pixi/config.toml",
    ),
    Category(
        text("protected.programs_run"), "ask",
        ".tool-versions .mise.toml .mise.*.toml mise.toml mise.*.toml .mise/ mise/config.toml .config/mise.toml .config/mise .rtx.toml"
        " devbox.json .flox/ .sdkmanrc .asdfrc .envrc.* .prototools aqua.y*ml .vfox.toml",
    ),
    Category(text("protected.credentials"), "ask", ".aws/ .azure/ .kube/ .docker/ .netrc _netrc .git-credentials .gcloud/ .config/gcloud"),
    Category(text("protected.keys"), "ask", ".gnupg/ .password-store/"),
    Category(text("protected.ssh"), "ask", ".ssh/"),
    Category(text("protected.logins"), "ask", "authorized_keys"),
    Category(text("protected.loaded_settings"), "ask", ".env .env.* .dev.vars .flaskenv .secrets"),
    Category(
        text("protected.shell_start"), "ask",
        ".config/direnv .config/fish .config/zsh .config/bash .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile"
        " .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc config.fish .envrc .bashenv"
        " .oh-my-zsh/ .config/nushell .config/powershell *profile.ps1 .xonshrc .elvish/ .tmux.conf .screenrc .byobu/ .xinitrc .xsession"
        " .xsessionrc .xprofile .xserverrc .zplug/ .config/starship.toml .config/tmux .config/kitty .config/alacritty .wezterm.lua"
        " .lessfilter .lesskey .dircolors .config/environment.d .pam_environment",
    ),
    Category(
        text("protected.debugger_start"), "ask",
        ".gdbinit .lldbinit* .pdbrc .pdbrc.py .gdbearlyinit .config/gdb .radare2rc .rdbgrc .byebugrc .cgdb/ .valgrindrc .strace",
    ),
    Category(
        text("protected.interpreter_start"), "ask",
        ".pythonrc* .pythonstartup .pystartup .ipython/ .jupyter/ jupyter_*config.* ipython_config.py .irbrc .pryrc .rprofile"
        " rprofile.site .renviron .juliarc.jl .octaverc .ghci.conf .sbclrc .clisprc* .guile .perldb .phpsh .sqliterc .psqlrc .my.cnf"
        " .mylogin.cnf .node_repl_history .noderc .lua_init .iex.exs .erlang .ocamlinit .swiplrc .scalarc .dbshell .mongorc.js"
        " .redisclirc .ackrc .ripgreprc .agrc .ctags .ctags.d/ .gvimrc .user.ini .htaccess web.config php.ini .pryrc.local",
    ),
    Category(text("protected.python_start"), "ask", "sitecustomize.py usercustomize.py *.pth pyvenv.cfg *.egg-link"),
    Category(
        text("protected.editor_start"), "ask",
        ".config/nvim .config/emacs .config/helix .config/zed .vimrc .exrc .nvimrc .nvim.lua .lvimrc .local.vimrc .ideavimrc .vsvimrc"
        " .kakrc .lazy.lua .nanorc .dir-locals.el .dir-locals-2.el .emacs .emacs.el .emacs.d/ .doom.d/ .spacemacs .vim/ .nvim/ .editrc"
        " init.vim .projectile .vimrc.local .vim.custom .nvim/init.lua _vimrc .jedrc .micro/",
    ),
    Category(text("protected.git_settings"), "ask", ".gitconfig .gitconfig.* .config/git .lfsconfig .gitreview"),
    Category(text("protected.submodules"), "ask", ".gitmodules .hgsub .repo/ west.yml"),
    Category(text("protected.git_filters"), "ask", ".gitattributes .hgeol"),
    Category(text("protected.mercurial_settings"), "ask", ".hgrc"),
    Category(
        text("protected.bot"), "ask",
        ".github/renovate.json* renovate.json* .renovaterc* .mergify.y*ml .mergify/"
        " .kodiak.toml bors.toml .bulldozer.y*ml .policy.y*ml .github/*.y*ml .whitesource"
        " .snyk .pmbot.y*ml .imgbotconfig .all-contributorsrc .pyup.y*ml .allstar/"
        " release-please-config.json .release-please-manifest.json .github/policies .palantir/ .prow.yaml .tide.y*ml .restyled.y*ml"
        " .deepsource.toml .codeclimate.y*ml .depfu.y*ml .lgtm.y*ml sonar-project.properties .sonarcloud.properties .codecov.y*ml"
        " codecov.y*ml",
    ),
    Category(text("protected.owners"), "ask", "codeowners owners owners_aliases"),
    Category(
        text("protected.services"), "ask", ".config/systemd launchagents/ launchdaemons/ .launchd/ .config/launchd"
    ),
    Category(text("protected.autostart"), "ask", ".config/autostart autorun.inf desktop.ini *.desktop *.lnk .directory"),
    Category(text("protected.scheduled"), "ask", ".crontab crontab"),
    Category(
        text("protected.runs_by_itself"), "review",
        "makefile gnumakefile *.mk cmakelists.txt cmakepresets.json *.cmake meson.build configure configure.ac build.ninja sconstruct"
        " package.json setup.py setup.cfg pyproject.toml conftest.py tox.ini noxfile.py tasks.py fabfile.py dodo.py hatch_build.py"
        " .flake8 mypy.ini .mypy.ini requirements*.txt pipfile environment.y*ml pixi.toml alembic.ini manage.py build.gradle"
        " build.gradle.kts build.sbt pom.xml build.xml build.xml.* cargo.toml build.rs gemfile *.gemspec rakefile guardfile capfile"
        " fastfile podfile package.swift mix.exs rebar.config dune-project build.zig project.clj deps.edn shadow-cljs.edn stack.yaml"
        " *.cabal composer.json go.mod go.work magefile.go justfile .justfile taskfile.y*ml gulpfile.* gruntfile.* jakefile*"
        " *.config.js *.config.cjs *.config.mjs *.config.ts *.config.mts .storybook/ webpack.*.js rollup.*.js karma.conf.* wdio.conf.*"
        " *.csproj *.fsproj *.vbproj *.vcxproj *.sln *.props *.targets dockerfile* *.dockerfile containerfile* docker-compose*.y*ml"
        " compose*.y*ml docker-bake.* vagrantfile flake.nix shell.nix default.nix devenv.nix devenv.y*ml workspace workspace.bazel"
        " module.bazel build build.bazel *.bzl buck pants*.toml nx.json turbo.json lerna.json rush.json pnpm-workspace.yaml angular.json"
        " serverless.y*ml samconfig.toml cdk.json pulumi*.y*ml terragrunt.hcl *.tf chart.yaml kustomization.y*ml firebase.json"
        " app.json project.json dvc.yaml snakefile nextflow.config *.nf mkdocs.y*ml conf.py _config.yml deno.json* import_map.json",
    ),
)  # fmt: skip


def _entries(treatment: Literal["ask", "review"]) -> dict[str, Text]:
    """Return the patterns of the table with why each is in it, the first of a pattern."""
    found: dict[str, Text] = {}
    for category in CATEGORIES:
        if category.treatment == treatment:
            for pattern in category.patterns.split():
                found.setdefault(
                    pattern.replace("_-_", " - ").replace("application_support", "application support"),
                    category.why,
                )
    return found


def _folders(entries: dict[str, Text]) -> dict[str, Text]:
    return {pattern[:-1]: why for pattern, why in entries.items() if pattern.endswith("/")}


def _pairs(entries: dict[str, Text]) -> dict[tuple[str, str], Text]:
    pairs = (pattern.split("/") for pattern in entries if "/" in pattern[:-1])
    return {(parent, name): entries[f"{parent}/{name}"] for parent, name in pairs}


def _files(entries: dict[str, Text]) -> dict[str, Text]:
    return {pattern: why for pattern, why in entries.items() if "/" not in pattern}


_ASKED, _REVIEWED = _entries("ask"), _entries("review")
PROTECTED_FOLDERS, PROTECTED_PAIRS, PROTECTED_FILES = _folders(_ASKED), _pairs(_ASKED), _files(_ASKED)
REVIEWED_FOLDERS, REVIEWED_FILES = _folders(_REVIEWED), _files(_REVIEWED)
PIPELINE_PATTERNS = frozenset(PIPELINE.patterns.split())
PLAIN_HIDDEN = frozenset(
    [".gitignore", ".gitkeep", ".keep", ".gitmessage", ".mailmap", ".editorconfig", ".dockerignore", ".prettierrc", ".prettierignore",
     ".eslintignore", ".eslintrc", ".npmignore", ".nvmrc", ".node-version", ".python-version", ".ruby-version", ".java-version",
     ".go-version", ".terraform-version", ".yamllint", ".stylelintrc", ".stylelintignore", ".babelrc", ".browserslistrc", ".swcrc",
     ".jshintrc", ".hintrc", ".nojekyll", ".well-known", ".changeset", ".github", ".gitlab", ".config", ".cache", ".venv", ".tox",
     ".nox", ".next", ".nuxt", ".svelte-kit", ".turbo", ".parcel-cache", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
     ".terraform", ".gradle", ".dart_tool", ".eggs", ".ipynb_checkpoints", ".coverage", ".nyc_output", ".yarn", ".cargo", ".bundle",
     ".vitepress", ".vuepress", ".storybook", ".docusaurus", ".clang-format", ".clang-tidy", ".rustfmt.toml", ".rustfmt", ".jscsrc",
     ".markdownlint.json", ".markdownlint.yaml", ".markdownlint.yml", ".markdownlintignore", ".hgignore", ".helmignore", ".gcloudignore",
     ".vercelignore", ".slugignore", ".cfignore", ".ignore", ".fdignore", ".rgignore", ".watchmanconfig", ".ds_store", ".metadata",
     ".spelling", ".codespellrc", ".cspell.json", ".vscodeignore", ".nycrc", ".c8rc.json", ".isort.cfg", ".style.yapf", ".bandit",
     ".sqlfluff", ".tflint.hcl", ".hadolint.yaml", ".shellcheckrc", ".swiftlint.yml", ".swiftformat", ".swift-version", ".scalafmt.conf",
     ".ocamlformat", ".php-version", ".perltidyrc", ".asf.yaml", ".cruft.json", ".copier-answers.yml", ".openapi-generator-ignore",
     ".git-blame-ignore-revs", ".gitleaks.toml", ".gitleaksignore", ".secrets.baseline", ".trivyignore", ".grype.yaml", ".licenserc.json",
     ".justfile", ".flake8", ".mypy.ini", ".jsbeautifyrc", ".htmlhintrc", ".tern-project", ".snapshots", ".assets", ".images"]
)  # fmt: skip
"""Hidden files and folders that run nothing; any other hidden name belongs to a tool that this table may not know."""
SECRET_FILES = (
    ".env", ".env.*", "*.env", ".envrc", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "identity", "*.pem", "*.key",
    "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.ovpn", "*.asc", ".netrc", "_netrc", ".pgpass",
    ".my.cnf", ".pypirc", ".npmrc", ".git-credentials", ".htpasswd", "credentials", "credentials.*", "*credentials*.json",
    "service-account*.json", "service_account*.json", "client_secret*.json", "secrets.*", "secret.*", ".secrets",
    "*.tfvars", "*.tfstate", "terraform.rc", ".terraformrc", ".vault-token", "kubeconfig", ".dockercfg", "token.json",
    "master.key", "*.gpg", ".bash_history", ".zsh_history", ".python_history", "auth.json", "hosts.yml",
)  # fmt: skip
SECRET_SAMPLES = (
    ".env", ".env.local", ".env.production", "id_rsa", "id_ed25519", "server.pem", "server.key", "cert.p12", ".netrc",
    ".npmrc", ".pypirc", ".git-credentials", "credentials", "credentials.json", "secrets.yml", "secrets.json", ".ssh", ".aws",
    "terraform.tfvars", "kubeconfig",
)  # fmt: skip
"""Names that a pattern of a shell must not match for it to be harmless."""
SECRET_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store", ".secrets"}
)
PUBLIC_FILES = (
    "*.example",
    "*.sample",
    "*.template",
    "*.dist",
    "*.pub",
    "*.example.*",
    "example.*",
    "*.sample.*",
)
# Names of this shape are source code about secrets more often than secrets.
SOURCE_FILES = (
    "*.py",
    "*.ts",
    "*.tsx",
    "*.js",
    "*.jsx",
    "*.go",
    "*.rs",
    "*.java",
    "*.rb",
    "*.md",
    "*.html",
    "*.css",
)
