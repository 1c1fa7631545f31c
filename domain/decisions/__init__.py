"""Parts of `domain.decide`, each for the commands of one matter."""
