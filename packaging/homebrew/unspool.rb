# The formula that scripts/homebrew-formula fills. It was never installed: Homebrew does not run
# where Unspool is built and tested.
class Unspool < Formula
  desc "Shows what an AI agent did, in the order in which it happened"
  homepage "@FOLDER@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  # @DOWNLOADS@

  def install
    bin.install "unspool"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/unspool.bash" => "unspool"
    zsh_completion.install "completions/_unspool"
    fish_completion.install "completions/unspool.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/unspool --version")
    assert_match "check", shell_output("#{bin}/unspool man db")
  end
end
